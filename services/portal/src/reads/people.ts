import type { QueryOptions, QueryRows } from '@playline/stores';
import { type IdAccess, idFor, millis, number, queryView, type Row, text } from './query-view.ts';

export interface IdentitySearch {
  readonly environmentId: string;
  /** Identity keys, each as 32 hexadecimal digits. */
  readonly identityIds: readonly string[];
}

const CONSENT_COLUMNS = {
  identityId: text('identity_id'),
  status: text('status'),
  source: text('source'),
  receivedMs: millis('received_at'),
  traceId: text('trace_id'),
};
export type ConsentChange = Row<typeof CONSENT_COLUMNS>;

const LINK_COLUMNS = {
  receivedMs: millis('received_at'),
  link: text('link'),
  outcome: text('outcome'),
  reason: text('reason'),
  movedCount: number('moved_count'),
  messageId: text('toString(message_id)'),
  traceId: text('trace_id'),
};
const LINKED_COLUMNS = { aId: text('a_id'), aKind: text('a_kind'), bId: text('b_id'), bKind: text('b_kind') };

interface LinkedIdentity {
  readonly identityId: string;
  readonly kind: string;
}
export interface LinkDecision extends Row<typeof LINK_COLUMNS> {
  readonly a: LinkedIdentity;
  readonly b: LinkedIdentity;
}

const argsOf = ({ environmentId, identityIds }: IdentitySearch) => ({
  environment: environmentId,
  identities: identityIds,
});

export function readConsents(query: QueryRows, search: IdentitySearch, options?: QueryOptions) {
  const viewQuery = {
    view: 'portal_consents',
    args: argsOf(search),
    columns: CONSENT_COLUMNS,
    tail: 'ORDER BY logged_at DESC, kafka_partition DESC, kafka_offset DESC',
    rowsMax: 200,
  };
  return queryView<ConsentChange>(query, viewQuery, options);
}

/** Returns the decisions that involve any of the identities, newest first. */
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
      columns: { ...LINK_COLUMNS, ...LINKED_COLUMNS },
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

/** Returns ids by identity key, masked for viewers without access to raw ids. Omits identities that have no events. */
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
