import type { QueryOptions, QueryRows } from '@playline/stores';
import { type IdAccess, idFor, msOf, queryView } from './query-view.ts';

/** Whose: keyed hashes of identities of one environment, 32 hexadecimal digits each. */
export interface IdentitySearch {
  readonly environmentId: string;
  readonly identityIds: readonly string[];
}

/** A change of a consent; times in epoch milliseconds. */
export interface ConsentChange {
  readonly identityId: string;
  readonly status: string;
  readonly source: string;
  readonly receivedMs: number;
  readonly traceId: string;
}

/** A decision about a link, or an unlink. */
export interface LinkDecision {
  readonly receivedMs: number;
  readonly link: string;
  readonly a: { readonly identityId: string; readonly kind: string };
  readonly b: { readonly identityId: string; readonly kind: string };
  readonly outcome: string;
  readonly reason: string;
  readonly movedCount: number;
  readonly messageId: string;
  readonly traceId: string;
}

const argsOf = ({ environmentId, identityIds }: IdentitySearch) => ({
  environment: environmentId,
  identities: identityIds,
});

/** All changes, the newest first. */
export function readConsents(query: QueryRows, question: IdentitySearch, options?: QueryOptions) {
  return queryView<ConsentChange>(
    query,
    {
      view: 'portal_consents',
      args: argsOf(question),
      columns: ['identity_id', 'status', 'source', msOf('received_at'), 'trace_id'],
      tail: 'ORDER BY logged_at DESC, kafka_partition DESC, kafka_offset DESC',
      rowsMax: 200,
      toRow: ([identityId, status, source, received, traceId]) => ({
        identityId: String(identityId),
        status: String(status),
        source: String(source),
        receivedMs: Number(received),
        traceId: String(traceId),
      }),
    },
    options,
  );
}

/** What was asked for about anybody of these, the newest first. */
export function readLinks(query: QueryRows, question: IdentitySearch, options?: QueryOptions) {
  return queryView<LinkDecision>(
    query,
    {
      view: 'portal_links',
      args: argsOf(question),
      columns: [
        ...[msOf('received_at'), 'link', 'a_id', 'a_kind', 'b_id', 'b_kind', 'outcome', 'reason'],
        ...['moved_count', 'toString(message_id)', 'trace_id'],
      ],
      tail: 'ORDER BY link_generation DESC, link_offset DESC, step DESC, link_partition DESC',
      rowsMax: 200,
      toRow: ([received, link, aId, aKind, bId, bKind, outcome, reason, moved, messageId, traceId]) => ({
        receivedMs: Number(received),
        link: String(link),
        outcome: String(outcome),
        reason: String(reason),
        a: { identityId: String(aId), kind: String(aKind) },
        b: { identityId: String(bId), kind: String(bKind) },
        movedCount: Number(moved),
        messageId: String(messageId),
        traceId: String(traceId),
      }),
    },
    options,
  );
}

/** Ids as clients sent them, by identity, as the reader may see them; of one without an event there is none. */
export async function readIds(
  query: QueryRows,
  question: IdentitySearch & { readonly sight: IdAccess },
  options?: QueryOptions,
): Promise<ReadonlyMap<string, string>> {
  if (question.identityIds.length === 0) return new Map();
  const rows = await queryView<[string, string]>(
    query,
    {
      view: 'portal_raw_ids',
      args: argsOf(question),
      columns: ['identity_id', 'id'],
      rowsMax: 1_000,
      toRow: ([identityId, id]) => [String(identityId), idFor(question.sight, String(id))],
    },
    options,
  );
  return new Map(rows);
}
