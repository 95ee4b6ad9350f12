import type { QueryOptions, QueryRows } from '@playline/stores';
import { type IdAccess, idFor, millis, number, queryView, text } from './query-view.ts';

export interface IdentitySearch {
  readonly environmentId: string;
  /** Keyed hashes of identities, 32 hexadecimal digits each. */
  readonly identityIds: readonly string[];
}

export interface ConsentChange {
  readonly identityId: string;
  readonly status: string;
  readonly source: string;
  readonly receivedMs: number;
  readonly traceId: string;
}

/** A decision about a link or an unlink. */
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

/** Newest first. */
export function readConsents(query: QueryRows, search: IdentitySearch, options?: QueryOptions) {
  const viewQuery = {
    view: 'portal_consents',
    args: argsOf(search),
    columns: {
      identityId: text('identity_id'),
      status: text('status'),
      source: text('source'),
      receivedMs: millis('received_at'),
      traceId: text('trace_id'),
    },
    tail: 'ORDER BY logged_at DESC, kafka_partition DESC, kafka_offset DESC',
    rowsMax: 200,
  };
  return queryView<ConsentChange>(query, viewQuery, options);
}

/** Decisions about any of the identities, newest first. */
export async function readLinks(
  query: QueryRows,
  search: IdentitySearch,
  options?: QueryOptions,
): Promise<LinkDecision[]> {
  const rows = await queryView(
    query,
    {
      view: 'portal_links',
      args: argsOf(search),
      columns: {
        receivedMs: millis('received_at'),
        link: text('link'),
        aId: text('a_id'),
        aKind: text('a_kind'),
        bId: text('b_id'),
        bKind: text('b_kind'),
        outcome: text('outcome'),
        reason: text('reason'),
        movedCount: number('moved_count'),
        messageId: text('toString(message_id)'),
        traceId: text('trace_id'),
      },
      tail: 'ORDER BY link_generation DESC, link_offset DESC, step DESC, link_partition DESC',
      rowsMax: 200,
    },
    options,
  );
  return rows.map(({ aId, aKind, bId, bKind, ...row }) => ({
    ...row,
    a: { identityId: aId, kind: aKind },
    b: { identityId: bId, kind: bKind },
  }));
}

/** Ids as clients sent them, masked for readers without access, by identity. An identity without an event has none. */
export async function readIds(
  query: QueryRows,
  search: IdentitySearch & { readonly idAccess: IdAccess },
  options?: QueryOptions,
): Promise<ReadonlyMap<string, string>> {
  if (search.identityIds.length === 0) return new Map();
  const columns = { identityId: text('identity_id'), id: text('id') };
  const viewQuery = { view: 'portal_raw_ids', args: argsOf(search), columns, rowsMax: 1_000 };
  const rows = await queryView<{ identityId: string; id: string }>(query, viewQuery, options);
  return new Map(rows.map(({ identityId, id }) => [identityId, idFor(search.idAccess, id)]));
}
