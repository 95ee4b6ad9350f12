import type { QueryOptions, QueryRows } from '@playline/stores';
import { type IdAccess, idFor, millis, number, queryView, type Row, text, toPage } from './query-view.ts';

export interface IdentitySearch {
  readonly environmentId: string;
  /** Identity keys, each as 32 hexadecimal digits. */
  readonly identityIds: readonly string[];
}

const argsOf = ({ environmentId, identityIds }: IdentitySearch) => ({
  environment: environmentId,
  identities: identityIds,
});

/** What a timeline contains: everything, messages, link decisions, consent changes, or decisions and changes. */
export type TimelinePart = '' | 'events' | 'identity' | 'consent' | 'history';

const TIMELINE_COLUMNS = {
  entry: text('entry'),
  happenedMs: millis('happened_at'),
  id: text('id'),
  // Type of the message or of the link; status of the consent.
  what: text('what'),
  // Name of the event; outcome of the link.
  name: text('name'),
  // Surface of the message; reason of the decision; source of the consent.
  origin: text('origin'),
  identityId: text('identity_id'),
  kind: text('kind'),
  otherId: text('other_id'),
  otherKind: text('other_kind'),
  messageId: text('message_id'),
  traceId: text('trace_id'),
  // The other fields of a message, as a JSON object.
  detail: text('detail'),
};
export type TimelineEntry = Row<typeof TIMELINE_COLUMNS>;
export type TimelinePosition = Pick<TimelineEntry, 'happenedMs' | 'id'>;

export interface TimelineSearch extends IdentitySearch {
  readonly show: TimelinePart;
  /** The last entry of the previous page. */
  readonly after?: TimelinePosition | undefined;
  readonly linesMax: number;
}

/** Read first, because a page of a person with many messages then reads only these days. */
const RECENT_DAYS = 31;

/** Reads a page of what happened to a person, newest first. */
export async function readTimeline(
  query: QueryRows,
  { show, after = { happenedMs: 0, id: '' }, linesMax, ...search }: TimelineSearch,
  options?: QueryOptions,
) {
  const page = { show, until: after.happenedMs, before: after.id, entries: linesMax };
  const [tail, columns] = ['ORDER BY happened_at DESC, id DESC', TIMELINE_COLUMNS];
  const read = (days: number) => {
    const args = { ...argsOf(search), ...page, days };
    return queryView<TimelineEntry>(
      query,
      { view: 'portal_timeline', args, columns, tail, rowsMax: linesMax },
      options,
    );
  };
  const recent = show === '' || show === 'events' ? await read(RECENT_DAYS) : [];
  return toPage(recent.length < linesMax ? await read(0) : recent, linesMax);
}

const PROFILE_COLUMNS = {
  firstSeenMs: millis('first_seen_at'),
  lastSeenMs: millis('last_seen_at'),
  firstSurface: text('first_surface'),
  lastSurface: text('last_surface'),
  // A JSON object; empty if no message contains traits.
  traits: text('traits'),
  events: number('events'),
  sessions: number('sessions'),
};
export type PersonProfile = Row<typeof PROFILE_COLUMNS>;

/** Returns null if the identities have no events. */
export async function readProfile(
  query: QueryRows,
  search: IdentitySearch,
  options?: QueryOptions,
): Promise<PersonProfile | null> {
  const viewQuery = { view: 'portal_profile', args: argsOf(search), columns: PROFILE_COLUMNS, rowsMax: 1 };
  const [profile] = await queryView<PersonProfile>(query, viewQuery, options);
  return profile ?? null;
}

/**
 * Returns the identities about which data is stored, with their ids, masked for viewers without access to raw ids. An id
 * is empty if no event contains it.
 */
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
