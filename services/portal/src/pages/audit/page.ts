/** The audit log of a project, shown to owners, and the audit log of the instance, shown to administrators. */
import { type HtmlValue, html, type Markup } from '@playline/api-docs';
import { emptyState, keyValues, table, time } from '../../frame/components.ts';
import { CSV_TYPE, toCsv, toIso } from '../../frame/csv.ts';
import type { PageResponse, PortalPage, Visit } from '../../frame/page.ts';
import { projectOf } from '../../frame/scope.ts';
import { type AuditLine, type AuditPosition, readAllAudit } from '../../reads/index.ts';
import type { PageParts } from '../index.ts';

type Records = 'accounts' | 'projects' | 'keys' | 'rateLimitKeys' | 'collections' | 'signableKeys';
type Parts = Pick<PageParts, Records | 'reads' | 'frame' | 'writeAudit'>;
type ToName = (id: string) => string;

const PAGE_LINES = 50;
/** Entries are retained for two years and deleted within the following month. */
const RETENTION_MS = 761 * 86_400_000;
const CLOCK_SKEW_MS = 60_000;

export function createAuditPages(parts: Parts): PortalPage[] {
  return [
    {
      path: '/projects/:project/audit',
      access: 'audit.read',
      show: (visit) => showAudit(parts, visit, projectOf(visit).id, 'Audit'),
    },
    {
      path: '/instance/audit',
      access: 'accounts.read',
      show: (visit) => showAudit(parts, visit, '', 'Instance audit'),
    },
  ];
}

async function showAudit(parts: Parts, visit: Visit, projectId: string, title: string): Promise<PageResponse> {
  const { reads, frame, writeAudit } = parts;
  const { signal } = visit;
  const names = await readNames(parts, projectId);
  const toName = (id: string) => names.get(id) || id;
  const untilMs = frame.wallClockMs() + CLOCK_SKEW_MS;
  const search = { projectId, sinceMs: untilMs - RETENTION_MS, untilMs };
  if (visit.query.get('as') === 'csv') {
    await writeAudit(visit, { action: 'audit.save', object: projectId });
    const lists = readAllAudit((each) => reads.audit(each, { signal }), search);
    const chunks = toCsv(lists, { columns: COLUMNS, toCells: (line) => toCells(line, toName) });
    return { kind: 'streamed file', name: `audit-${projectId || 'instance'}.csv`, type: CSV_TYPE, chunks };
  }
  const lines = await reads.audit({ ...search, entriesMax: PAGE_LINES + 1, before: readPosition(visit) }, { signal });
  const actions = html`<a class="button outline" href="${visit.path}?as=csv">Export as CSV</a>`;
  return { kind: 'page', title, actions, content: toContent(visit, lines, toName) };
}

/** Returns the names of all accounts, and of the objects of the project or, without a project, of the instance. */
async function readNames(parts: Parts, ownerId: string): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const { accounts, projects, collections, signableKeys, rateLimitKeys, keys } = parts;
  const ownOf = <R extends { projectId: string }>(records: readonly R[]) =>
    records.filter(({ projectId }) => ownerId === '' || projectId === ownerId);
  for (const { id, name, environments } of await projects.all())
    if (ownerId === '' || id === ownerId)
      for (const each of [{ id, name }, ...environments]) names.set(each.id, each.name);
  for (const { id, name } of [await accounts.all(), ownOf(await collections.all())].flat()) names.set(id, name);
  for (const { address, name } of ownOf(await signableKeys.all())) names.set(address, name);
  if (ownerId === '') for (const { keyId, partner } of await rateLimitKeys.all()) names.set(keyId, partner);
  for (const { id, kind, environmentId, live, ended } of ownOf(await keys.all())) {
    names.set(id, `${kind} key in ${names.get(environmentId)}`);
    for (const key of [live, ended].flat())
      if (key !== null) names.set(key.keyId, key.name || `${kind} key ${key.first4}…${key.last4}`);
  }
  return names;
}

/** Longer than any entry id, which consists of a kind, an object id and a request id. */
const ENTRY_CHARACTERS_MAX = 700;

export function readPosition({ query }: Visit): AuditPosition | undefined {
  const [time = '', entryId = ''] = [query.get('before') ?? '', query.get('entry') ?? ''];
  if (!/^\d{1,14}$/.test(time) || entryId.length > ENTRY_CHARACTERS_MAX) return undefined;
  return { happenedMs: Number(time), entryId };
}

function toContent(visit: Visit, lines: readonly AuditLine[], toName: ToName): Markup {
  const page = lines.slice(0, PAGE_LINES);
  if (page.length === 0)
    return emptyState(
      'No audit entries yet',
      html`<p>Changes of keys, members, limits and settings appear here within seconds and remain for two years.</p>`,
      { path: '/docs/operate#roles-and-audit-log', text: 'What the audit log records' },
    );
  const rows = page.map((line) => ({
    cells: [
      time(line.happenedMs),
      html`<code>${line.action}</code>`,
      line.object === '' ? '–' : toNamed(line.object, toName),
      line.actor === '' ? 'unknown' : toNamed(line.actor, toName),
      line.address === '' ? '–' : line.address,
    ],
    detail: keyValues(toDetail(line, toName)),
  }));
  const { happenedMs, entryId } = page.at(-1)!;
  const older = new URLSearchParams({ before: String(happenedMs), entry: entryId });
  return html`<p class="muted">All changes and their authors. IP addresses are retained for 90 days.</p>
${table('Audit log', ['Time', 'Action', 'Object', 'Author', 'IP address'], rows)}
<p>${lines.length > page.length ? html`<a class="button outline" href="${visit.path}?${older.toString()}">Older entries</a>` : ''}</p>`;
}

/** The name, with the id on hover. Ids without a name are shown in full. */
function toNamed(id: string, toName: ToName): Markup {
  const name = toName(id);
  return name === id ? html`<code>${id}</code>` : html`<span title="${id}">${name}</span>`;
}

function toDetail({ detail, environmentId, requestId }: AuditLine, toName: ToName): [string, HtmlValue][] {
  const environment = environmentId === '' ? {} : { environment: environmentId };
  const fields = Object.entries<unknown>({ ...parseDetail(detail), ...environment, request: requestId });
  return fields.map(([name, value]) => {
    if (ID_FIELDS.includes(name)) return [name, toNamed(String(value), toName)];
    return [name, html`<code>${typeof value === 'string' ? value : toNamedJson(value, toName)}</code>`];
  });
}

/** Fields of a detail that contain ids. Other texts, such as the name of a key, can be equal to the id of an object. */
const ID_FIELDS = ['environment', 'projectId', 'signer'];

const toNamedJson = (detail: unknown, toName: ToName): string =>
  JSON.stringify(detail, (field, value) => (ID_FIELDS.includes(field) ? toName(value) : value));

function parseDetail(detail: string): object {
  try {
    return JSON.parse(detail);
  } catch {
    return { detail };
  }
}

const NAMED_COLUMNS = 'time|action|object|actor|environment|address|request|detail'.split('|');
const COLUMNS = [...NAMED_COLUMNS, 'object id', 'actor id', 'environment id'];

function toCells(line: AuditLine, toName: ToName): readonly string[] {
  const ids = [line.object, line.actor, line.environmentId];
  const detail = toNamedJson(parseDetail(line.detail), toName);
  return [toIso(line.happenedMs), line.action, ...ids.map(toName), line.address, line.requestId, detail, ...ids];
}
