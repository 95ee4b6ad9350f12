/** The audit log of a project, shown to owners, and the audit log of the instance, shown to administrators. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { disclosure, emptyState, table, time } from '../../frame/components.ts';
import { CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import { projectPath } from '../../frame/layout.ts';
import type { PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { type AuditLine, type AuditPosition, readAllAudit } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Parts = Pick<PageParts, 'reads' | 'accounts' | 'frame' | 'writeAudit'>;
type ToName = (actor: string) => string;

const PAGE_LINES = 100;
/** Entries are retained for two years and deleted within the following month. */
const RETENTION_MS = 761 * 86_400_000;
const CLOCK_SKEW_MS = 60_000;

export function createProjectAuditPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/audit',
    access: 'audit.read',
    show: (visit) => showAudit(parts, visit, projectOf(visit).id, `Audit log for ${projectOf(visit).name}`),
  };
}

export function createInstanceAuditPage(parts: Parts): PortalPage {
  return {
    path: '/instance/audit',
    access: 'accounts.read',
    show: (visit) => showAudit(parts, visit, '', 'Instance audit log'),
  };
}

async function showAudit(parts: Parts, visit: Visit, projectId: string, title: string): Promise<PageResponse> {
  const { reads, accounts, frame, writeAudit } = parts;
  const { signal } = visit;
  const names = new Map((await accounts.all()).map(({ id, name }) => [id, name]));
  const toName = (actor: string) => names.get(actor) ?? actor;
  const untilMs = frame.wallClockMs() + CLOCK_SKEW_MS;
  const search = { projectId, sinceMs: untilMs - RETENTION_MS, untilMs };
  if (visit.query.get('as') === 'csv') {
    await writeAudit(visit, { action: 'audit.save', object: projectId });
    const lists = readAllAudit((each) => reads.audit(each, { signal }), search);
    const chunks = toCsv(lists, { columns: COLUMNS, toCells: (line) => toCells(line, toName) });
    return { kind: 'streamed file', name: `audit-${projectId || 'instance'}.csv`, type: CSV_TYPE, chunks };
  }
  const lines = await reads.audit({ ...search, entriesMax: PAGE_LINES + 1, before: readPosition(visit) }, { signal });
  return { kind: 'page', title, content: toContent(visit, lines, toName) };
}

/** Longer than any entry id, which consists of a kind, an object id and a request id. */
const ENTRY_CHARACTERS_MAX = 700;

function readPosition({ query }: Visit): AuditPosition | undefined {
  const [time = '', entryId = ''] = [query.get('before') ?? '', query.get('entry') ?? ''];
  if (!/^\d{1,14}$/.test(time) || entryId.length > ENTRY_CHARACTERS_MAX) return undefined;
  return { happenedMs: Number(time), entryId };
}

function toContent(visit: Visit, lines: readonly AuditLine[], toName: ToName): Markup {
  const page = lines.slice(0, PAGE_LINES);
  if (page.length === 0)
    return emptyState('No audit entries', html`<p>Changes appear here within seconds and remain for two years.</p>`);
  const rows = page.map((line): readonly HtmlValue[] => [
    time(line.happenedMs),
    html`<code>${line.action}</code>`,
    html`<code>${line.object}</code>`,
    line.actor === '' ? 'unknown' : toName(line.actor),
    line.address === '' ? '–' : line.address,
    disclosure('Show details', html`<pre>${toDetail(line)}</pre>`),
  ]);
  const { happenedMs, entryId } = page.at(-1)!;
  const older = new URLSearchParams({ before: String(happenedMs), entry: entryId });
  const back = visit.project === null ? '' : html` <a href="${projectPath(visit.project.id)}">Back to the project</a>`;
  return html`<p>All changes and their authors. IP addresses are retained for 90 days. <a href="${visit.path}?as=csv">Export all as CSV</a>${back}</p>
${table('Audit log', ['Time', 'Action', 'Object', 'Author', 'IP address', 'Details'], rows)}
<p>${lines.length > page.length ? html`<a href="${visit.path}?${older.toString()}">Older entries</a>` : ''}</p>`;
}

function toDetail({ detail, environmentId, requestId }: AuditLine): string {
  const context = { ...(environmentId === '' ? {} : { environment: environmentId }), request: requestId };
  try {
    return JSON.stringify({ ...context, ...JSON.parse(detail) }, null, 2);
  } catch {
    return `${JSON.stringify(context)}\n${detail}`;
  }
}

const COLUMNS = ['time', 'action', 'object', 'actor', 'environment', 'address', 'request', 'detail'];

const toCells = (line: AuditLine, toName: ToName): readonly string[] => [
  toIso(line.happenedMs),
  line.action,
  line.object,
  toName(line.actor),
  line.environmentId,
  line.address,
  line.requestId,
  line.detail,
];
