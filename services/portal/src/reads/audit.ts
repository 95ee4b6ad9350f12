import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import type { Span } from './messages.ts';
import { msOf, queryView, readPages, toPage } from './query-view.ts';

/** Whose audit: of a project, or with '' of the instance. */
export interface AuditSearch extends Span {
  readonly projectId: string;
  readonly actor?: string;
  readonly action?: string;
  /** Where the page in front ended. */
  readonly before?: AuditPosition;
  readonly entriesMax: number;
}

/** An entry among those of a project, by when it was made; many may be of one moment. */
export interface AuditPosition {
  readonly happenedMs: number;
  readonly entryId: string;
}

/** Who did what; `happenedMs` in epoch milliseconds, `detail` JSON text, `address` '' after 90 days. */
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

/** The newest first. */
export function readAudit(query: QueryRows, question: AuditSearch, options?: QueryOptions) {
  const { projectId, sinceMs, actor = '', action = '', before, entriesMax } = question;
  const untilMs = before === undefined ? question.untilMs : Math.min(question.untilMs, before.happenedMs + 1);
  return queryView<AuditLine>(
    query,
    {
      view: 'portal_audit',
      args: { project: projectId, since: sinceMs, until: untilMs, actor, action },
      columns: [
        ...[msOf('happened_at'), 'environment_id', 'kind', 'object', 'revision', 'action', 'actor', 'request_id'],
        ...['address', 'detail', 'entry_id'],
      ],
      tail: `${before === undefined ? '' : behind(before)} ORDER BY happened_at DESC, entry_id DESC`,
      rowsMax: entriesMax,
      toRow: ([
        happened,
        environmentId,
        kind,
        object,
        revision,
        action,
        actor,
        requestId,
        address,
        detail,
        entryId,
      ]) => ({
        happenedMs: Number(happened),
        environmentId: String(environmentId),
        kind: String(kind),
        object: String(object),
        revision: Number(revision),
        action: String(action),
        actor: String(actor),
        requestId: String(requestId),
        address: String(address),
        detail: String(detail),
        entryId: String(entryId),
      }),
    },
    options,
  );
}

const behind = ({ happenedMs, entryId }: AuditPosition) =>
  `WHERE (${msOf('happened_at')}, entry_id) < (${Math.trunc(happenedMs)}, ${quoteText(entryId)})`;

/** So many rows are held at a time, a few hundred kilobytes. */
const ENTRIES_PER_QUERY = 2_000;

/** All entries that are asked for, the newest first, however many: a page of them at a time. */
export function readAllAudit(
  audit: (question: AuditSearch) => Promise<readonly AuditLine[]>,
  question: Omit<AuditSearch, 'entriesMax' | 'before'>,
): AsyncGenerator<readonly AuditLine[], AuditPosition | null> {
  return readPages<AuditLine, AuditPosition>(
    async (entriesMax, before) =>
      toPage(await audit({ ...question, entriesMax, ...(before && { before }) }), entriesMax),
    { linesMax: Number.POSITIVE_INFINITY, perQuery: ENTRIES_PER_QUERY },
  );
}
