import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import type { Span } from './messages.ts';
import { millis, msOf, number, queryView, readPages, text, toPage } from './query-view.ts';

export interface AuditSearch extends Span {
  /** '' for the instance. */
  readonly projectId: string;
  readonly before?: AuditPosition | undefined;
  readonly entriesMax: number;
}

/** Position of an entry in a project's audit. Many entries may have the same time. */
export interface AuditPosition {
  readonly happenedMs: number;
  readonly entryId: string;
}

/** `detail` is JSON text; `address` is '' after 90 days. */
export interface AuditLine extends AuditPosition {
  readonly environmentId: string;
  readonly kind: string;
  readonly object: string;
  readonly revision: number;
  readonly action: string;
  readonly actor: string;
  readonly requestId: string;
  readonly address: string;
  readonly detail: string;
}

/** Newest first. */
export function readAudit(query: QueryRows, search: AuditSearch, options?: QueryOptions): Promise<AuditLine[]> {
  const { projectId, sinceMs, before, entriesMax } = search;
  const untilMs = before === undefined ? search.untilMs : Math.min(search.untilMs, before.happenedMs + 1);
  const viewQuery = {
    view: 'portal_audit',
    args: { project: projectId, since: sinceMs, until: untilMs, actor: '', action: '' },
    columns: {
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
    },
    tail: `${before === undefined ? '' : toCondition(before)} ORDER BY happened_at DESC, entry_id DESC`,
    rowsMax: entriesMax,
  };
  return queryView<AuditLine>(query, viewQuery, options);
}

const toCondition = ({ happenedMs, entryId }: AuditPosition) =>
  `WHERE (${msOf('happened_at')}, entry_id) < (${Math.trunc(happenedMs)}, ${quoteText(entryId)})`;

/** A few hundred kilobytes. */
const ENTRIES_PER_QUERY = 2_000;

/** All entries of a search, newest first, one page at a time. */
export function readAllAudit(
  audit: (search: AuditSearch) => Promise<readonly AuditLine[]>,
  search: Omit<AuditSearch, 'entriesMax' | 'before'>,
): AsyncGenerator<readonly AuditLine[], AuditPosition | null> {
  return readPages<AuditLine, AuditPosition>(
    async (entriesMax, before) => toPage(await audit({ ...search, entriesMax, before }), entriesMax),
    { linesMax: Number.POSITIVE_INFINITY, perQuery: ENTRIES_PER_QUERY },
  );
}
