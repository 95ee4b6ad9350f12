import type { QueryOptions, QueryRows } from '@playline/runtime';
import { askView, msOf } from './ask-view.ts';
import type { Span } from './messages.ts';

/** Whose audit: of a project, or with '' of the instance. */
export interface AuditQuestion extends Span {
  readonly projectId: string;
  readonly actor?: string;
  readonly action?: string;
  readonly entriesMax: number;
}

/** Who did what; `happenedMs` in epoch milliseconds, `detail` JSON text, `address` '' after 90 days. */
export interface AuditLine {
  readonly happenedMs: number;
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
  const { projectId, sinceMs, untilMs, actor = '', action = '', entriesMax } = question;
  return askView<AuditLine>(
    query,
    {
      view: 'portal_audit',
      args: { project: projectId, since: sinceMs, until: untilMs, actor, action },
      columns: [
        ...[msOf('happened_at'), 'environment_id', 'kind', 'object', 'revision', 'action', 'actor', 'request_id'],
        ...['address', 'detail'],
      ],
      tail: 'ORDER BY happened_at DESC, entry_id DESC',
      rowsMax: entriesMax,
      toRow: ([happened, environmentId, kind, object, revision, action, actor, requestId, address, detail]) => ({
        ...{ happenedMs: Number(happened), environmentId: String(environmentId), kind: String(kind) },
        ...{ object: String(object), revision: Number(revision), action: String(action), actor: String(actor) },
        ...{ requestId: String(requestId), address: String(address), detail: String(detail) },
      }),
    },
    options,
  );
}
