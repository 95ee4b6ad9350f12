import { type QueryOptions, type QueryRows, quoteText } from '@playline/stores';
import { askView, msOf, readPages, toPage } from './ask-view.ts';
import type { Span } from './messages.ts';

/** Whose audit: of a project, or with '' of the instance. */
export interface AuditQuestion extends Span {
  readonly projectId: string;
  readonly actor?: string;
  readonly action?: string;
  /** Where the page in front ended. */
  readonly before?: AuditPlace;
  readonly entriesMax: number;
}

/** An entry among those of a project, by when it was made; many may be of one moment. */
export interface AuditPlace {
  readonly happenedMs: number;
  readonly entryId: string;
}

/** Who did what; `happenedMs` in epoch milliseconds, `detail` JSON text, `address` '' after 90 days. */
export interface AuditLine extends AuditPlace {
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
export function readAudit(query: QueryRows, question: AuditQuestion, options?: QueryOptions) {
  const { projectId, sinceMs, actor = '', action = '', before, entriesMax } = question;
  const untilMs = before === undefined ? question.untilMs : Math.min(question.untilMs, before.happenedMs + 1);
  return askView<AuditLine>(
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

const behind = ({ happenedMs, entryId }: AuditPlace) =>
  `WHERE (${msOf('happened_at')}, entry_id) < (${Math.trunc(happenedMs)}, ${quoteText(entryId)})`;

/** So many rows are held at a time, a few hundred kilobytes. */
const ENTRIES_PER_QUESTION = 2_000;

/** All entries that are asked for, the newest first, however many: a page of them at a time. */
export function readWholeAudit(
  audit: (question: AuditQuestion) => Promise<readonly AuditLine[]>,
  question: Omit<AuditQuestion, 'entriesMax' | 'before'>,
): AsyncGenerator<readonly AuditLine[], AuditPlace | null> {
  return readPages<AuditLine, AuditPlace>(
    async (entriesMax, before) =>
      toPage(await audit({ ...question, entriesMax, ...(before && { before }) }), entriesMax),
    { linesMax: Number.POSITIVE_INFINITY, perQuestion: ENTRIES_PER_QUESTION },
  );
}
