import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { disclosure, emptyState, table, time } from '../../frame/components.ts';
import { CSV_TYPE, toCsv } from '../../frame/csv.ts';
import { projectPath } from '../../frame/layout.ts';
import type { Answer, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { type AuditLine, type AuditPosition, readAllAudit } from '../../reads/index.ts';
import type { PagesParts } from '../index.ts';

type Parts = Pick<PagesParts, 'reads' | 'accounts' | 'frame' | 'writeAudit'>;

const LINES_A_PAGE = 100;
/** Entries are kept for two years, and may take another month to go. */
const KEPT_MS = 761 * 86_400_000;

/** Who did what in a project: its owners and administrators. */
export function createProjectAuditPage(parts: Parts): PortalPage {
  return {
    path: '/projects/:project/audit',
    access: 'audit.read',
    show: (visit) => {
      const { id: projectId, name } = projectOf(visit);
      return showAudit(parts, visit, { projectId, title: `Audit of ${name}` });
    },
  };
}

/** Who did what to the instance: accounts, partners, and what belongs to no project. */
export function createInstanceAuditPage(parts: Parts): PortalPage {
  return {
    path: '/instance/audit',
    access: 'accounts.read',
    show: (visit) => showAudit(parts, visit, { projectId: '', title: 'Audit of the instance' }),
  };
}

interface Subject {
  /** '' for the instance. */
  readonly projectId: string;
  readonly title: string;
}

async function showAudit(
  { reads, accounts, frame, writeAudit: note }: Parts,
  visit: Visit,
  { projectId, title }: Subject,
): Promise<Answer> {
  const names = new Map((await accounts.all()).map(({ id, name }) => [id, name]));
  const nameOf = (actor: string) => names.get(actor) ?? actor;
  const { signal } = visit;
  const untilMs = frame.wallClockMs() + AHEAD_MS;
  const asked = { projectId, sinceMs: untilMs - KEPT_MS, untilMs };
  if (visit.query.get('as') === 'csv') {
    await note(visit, { action: 'audit.save', object: projectId });
    const pieces = toAuditCsv(
      readAllAudit((question) => reads.audit(question, { signal }), asked),
      nameOf,
    );
    return { kind: 'long file', name: `audit-${projectId || 'instance'}.csv`, type: CSV_TYPE, pieces };
  }
  const before = positionOf(visit);
  const lines = await reads.audit({ ...asked, entriesMax: LINES_A_PAGE + 1, ...(before && { before }) }, { signal });
  const page = lines.slice(0, LINES_A_PAGE);
  return { kind: 'page', title, content: toContent(visit, { page, hasOlder: lines.length > page.length, nameOf }) };
}

/** Clocks of others may be a little ahead. */
const AHEAD_MS = 60_000;
/** The id of an entry is made of a kind, the id of an object and the id of a request; it is no longer than this. */
const ENTRY_CHARACTERS_MAX = 700;

/** The entry behind which the page begins, where the address names one. */
function positionOf({ query }: Visit): AuditPosition | undefined {
  const [time = '', entryId = ''] = [query.get('before') ?? '', query.get('entry') ?? ''];
  if (!/^\d{1,14}$/.test(time) || entryId.length > ENTRY_CHARACTERS_MAX) return undefined;
  return { happenedMs: Number(time), entryId };
}

interface Shown {
  readonly page: readonly AuditLine[];
  readonly hasOlder: boolean;
  readonly nameOf: (actor: string) => string;
}

function toContent(visit: Visit, { page, hasOlder, nameOf }: Shown): Markup {
  if (page.length === 0)
    return emptyState('Nothing was done', html`<p>Entries stand here within seconds of a change, for two years.</p>`);
  const rows = page.map((line): readonly HtmlValue[] => [
    time(line.happenedMs),
    html`<code>${line.action}</code>`,
    html`<code>${line.object}</code>`,
    line.actor === '' ? 'nobody known' : nameOf(line.actor),
    line.address === '' ? '–' : line.address,
    disclosure('Show', html`<pre>${toDetail(line)}</pre>`),
  ]);
  const older = hasOlder ? html`<a href="${visit.path}?${toQuery(page.at(-1)!)}">Older entries</a>` : '';
  const back = visit.project === null ? '' : html` <a href="${projectPath(visit.project.id)}">The project</a>`;
  return html`<p>Whoever made a change stands in the record of it, and the entry follows from the record. Where a request came from is kept for 90 days. <a href="${visit.path}?as=csv">Export all as CSV</a>${back}</p>
${table('What was done', ['Time', 'Action', 'To what', 'By whom', 'From where', 'Detail'], rows)}
<p>${older}</p>`;
}

const toQuery = ({ happenedMs, entryId }: AuditPosition) =>
  new URLSearchParams({ before: String(happenedMs), entry: entryId }).toString();

/** What it was changed to, a member a line; what is no JSON stands as it is. */
function toDetail({ detail, environmentId, requestId }: AuditLine): string {
  const about = { ...(environmentId === '' ? {} : { environment: environmentId }), request: requestId };
  try {
    return JSON.stringify({ ...about, ...JSON.parse(detail) }, null, 2);
  } catch {
    return `${JSON.stringify(about)}\n${detail}`;
  }
}

const COLUMNS = ['time', 'action', 'object', 'actor', 'environment', 'address', 'request', 'detail'];

/** Entries, a piece of the file for each list. @param nameOf what an actor is called */
function toAuditCsv(
  lists: AsyncIterable<readonly AuditLine[]>,
  nameOf: (actor: string) => string,
): AsyncGenerator<string> {
  return toCsv(lists, { columns: COLUMNS, toCells: (line) => toCells(line, nameOf) });
}

const toCells = (line: AuditLine, nameOf: (actor: string) => string): readonly string[] => [
  ...[new Date(line.happenedMs).toISOString(), line.action, line.object, nameOf(line.actor), line.environmentId],
  ...[line.address, line.requestId, line.detail],
];
