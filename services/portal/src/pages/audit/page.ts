/** The audit of a project, for owners, and of the instance, for administrators. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { disclosure, emptyState, table, time } from '../../frame/components.ts';
import { CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { projectPath } from '../../frame/layout.ts';
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { type AuditLine, type AuditPosition, readAllAudit } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'reads' | 'accounts' | 'frame' | 'writeAudit'>;
type NameOf = (actor: string) => string;

const LINES_A_PAGE = 100;
/** Entries are kept for two years, and removed within another month. */
const KEPT_MS = 761 * 86_400_000;
/** Clocks of other machines may be a little ahead. */
const AHEAD_MS = 60_000;

export function createProjectAuditPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/audit',
    access: 'audit.read',
    show: (visit) => showAudit(parts, visit, projectOf(visit).id, `Audit of ${projectOf(visit).name}`),
  };
}

export function createInstanceAuditPage(parts: Parts): PortalPage {
  return {
    path: '/instance/audit',
    access: 'accounts.read',
    show: (visit) => showAudit(parts, visit, '', 'Audit of the instance'),
  };
}

async function showAudit(parts: Parts, visit: Visit, projectId: string, title: string): Promise<Answer> {
  const { reads, accounts, frame, writeAudit } = parts;
  const { signal } = visit;
  const names = new Map((await accounts.all()).map(({ id, name }) => [id, name]));
  const nameOf = (actor: string) => names.get(actor) ?? actor;
  const untilMs = frame.wallClockMs() + AHEAD_MS;
  const search = { projectId, sinceMs: untilMs - KEPT_MS, untilMs };
  if (visit.query.get('as') === 'csv') {
    await writeAudit(visit, { action: 'audit.save', object: projectId });
    const lists = readAllAudit((each) => reads.audit(each, { signal }), search);
    const pieces = toCsv(lists, { columns: COLUMNS, toCells: (line) => toCells(line, nameOf) });
    return { kind: 'streamed file', name: `audit-${projectId || 'instance'}.csv`, type: CSV_TYPE, pieces };
  }
  const lines = await reads.audit({ ...search, entriesMax: LINES_A_PAGE + 1, before: positionOf(visit) }, { signal });
  return { kind: 'page', title, content: toContent(visit, lines, nameOf) };
}

/** Longer than every entry id, which joins a kind, an object id and a request id. */
const ENTRY_CHARACTERS_MAX = 700;

function positionOf({ query }: Visit): AuditPosition | undefined {
  const [time = '', entryId = ''] = [query.get('before') ?? '', query.get('entry') ?? ''];
  if (!/^\d{1,14}$/.test(time) || entryId.length > ENTRY_CHARACTERS_MAX) return undefined;
  return { happenedMs: Number(time), entryId };
}

function toContent(visit: Visit, lines: readonly AuditLine[], nameOf: NameOf): Markup {
  const page = lines.slice(0, LINES_A_PAGE);
  if (page.length === 0)
    return emptyState('No entries', html`<p>Changes appear here within seconds, and stay for two years.</p>`);
  const rows = page.map((line): readonly HtmlValue[] => [
    time(line.happenedMs),
    html`<code>${line.action}</code>`,
    html`<code>${line.object}</code>`,
    line.actor === '' ? 'unknown' : nameOf(line.actor),
    line.address === '' ? '–' : line.address,
    disclosure('Show', html`<pre>${toDetail(line)}</pre>`),
  ]);
  const { happenedMs, entryId } = page.at(-1)!;
  const older = new URLSearchParams({ before: String(happenedMs), entry: entryId });
  const back = visit.project === null ? '' : html` <a href="${projectPath(visit.project.id)}">Back to the project</a>`;
  return html`<p>All changes with their author. Client addresses are kept for 90 days. <a href="${visit.path}?as=csv">Export all as CSV</a>${back}</p>
${table('Audit', ['Time', 'Action', 'Object', 'Author', 'Address', 'Detail'], rows)}
<p>${lines.length > page.length ? html`<a href="${visit.path}?${older.toString()}">Older entries</a>` : ''}</p>`;
}

function toDetail({ detail, environmentId, requestId }: AuditLine): string {
  const about = { ...(environmentId === '' ? {} : { environment: environmentId }), request: requestId };
  try {
    return JSON.stringify({ ...about, ...JSON.parse(detail) }, null, 2);
  } catch {
    return `${JSON.stringify(about)}\n${detail}`;
  }
}

const COLUMNS = ['time', 'action', 'object', 'actor', 'environment', 'address', 'request', 'detail'];

const toCells = (line: AuditLine, nameOf: NameOf): readonly string[] => [
  toIso(line.happenedMs),
  line.action,
  line.object,
  nameOf(line.actor),
  line.environmentId,
  line.address,
  line.requestId,
  line.detail,
];
