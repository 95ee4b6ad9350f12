import { quoteText } from '@playline/stores';
import type { TimeRange } from './messages.ts';
import { millis, msOf, number, type QueryView, type Row, readPages, text, toPage } from './query-view.ts';

export interface AuditSearch extends TimeRange {
  /** Empty in the audit log of the instance. */
  readonly projectId: string;
  readonly before?: AuditPosition | undefined;
  /** Returns only actions that start with this text. */
  readonly actionPrefix?: string | undefined;
  readonly entriesMax: number;
}

const COLUMNS = {
  happenedMs: millis('happened_at'),
  environmentId: text('environment_id'),
  kind: text('kind'),
  object: text('object'),
  revision: number('revision'),
  action: text('action'),
  actor: text('actor'),
  requestId: text('request_id'),
  address: text('address'),
  detail: text('detail'),
  entryId: text('entry_id'),
};

/** `detail` is a JSON object. `address` is deleted after 90 days. */
export type AuditLine = Row<typeof COLUMNS>;
/** Includes the entry id, because several entries can have the same time. */
export type AuditPosition = Pick<AuditLine, 'happenedMs' | 'entryId'>;

export function readAudit(queryView: QueryView, search: AuditSearch): Promise<AuditLine[]> {
  const { projectId, sinceMs, before, actionPrefix, entriesMax } = search;
  const untilMs = before === undefined ? search.untilMs : Math.min(search.untilMs, before.happenedMs + 1);
  const conditions = [
    ...(before === undefined ? [] : [toCondition(before)]),
    ...(actionPrefix === undefined ? [] : [`startsWith(action, ${quoteText(actionPrefix)})`]),
  ];
  return queryView({
    view: 'portal_audit',
    args: { project: projectId, since: sinceMs, until: untilMs, actor: '', action: '' },
    columns: COLUMNS,
    tail: `${conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`} ORDER BY happened_at DESC, entry_id DESC`,
    rowsMax: entriesMax,
  });
}

const toCondition = ({ happenedMs, entryId }: AuditPosition) =>
  `(${msOf('happened_at')}, entry_id) < (${Math.trunc(happenedMs)}, ${quoteText(entryId)})`;

const ENTRIES_PER_QUERY = 2_000;

export function readAllAudit(
  audit: (search: AuditSearch) => Promise<readonly AuditLine[]>,
  search: Omit<AuditSearch, 'entriesMax' | 'before'>,
): AsyncGenerator<readonly AuditLine[], AuditPosition | null> {
  return readPages<AuditLine, AuditPosition>(
    async (entriesMax, before) => toPage(await audit({ ...search, entriesMax, before }), entriesMax),
    { linesMax: Number.POSITIVE_INFINITY, perQuery: ENTRIES_PER_QUERY },
  );
}
