import { type IdAccess, maskId, millis, number, type QueryView, type Row, text, toPage } from './query-view.ts';

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
export async function readTimeline(queryView: QueryView, search: TimelineSearch) {
  const { show, after = { happenedMs: 0, id: '' }, linesMax } = search;
  const page = { show, until: after.happenedMs, before: after.id, entries: linesMax };
  const [tail, columns] = ['ORDER BY happened_at DESC, id DESC', TIMELINE_COLUMNS];
  const read = (days: number) => {
    const args = { ...argsOf(search), ...page, days };
    return queryView({ view: 'portal_timeline', args, columns, tail, rowsMax: linesMax });
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
export async function readProfile(queryView: QueryView, search: IdentitySearch): Promise<PersonProfile | null> {
  const viewQuery = { view: 'portal_profile', args: argsOf(search), columns: PROFILE_COLUMNS, rowsMax: 1 };
  return (await queryView(viewQuery))[0] ?? null;
}

/**
 * Returns the identities about which data is stored, with their ids, masked for viewers without access to raw ids. An id
 * is empty if no event contains it.
 */
export async function readIds(queryView: QueryView, search: IdentitySearch & { readonly idAccess: IdAccess }) {
  if (search.identityIds.length === 0) return new Map<string, string>();
  const columns = { identityId: text('identity_id'), id: text('id') };
  const rows = await queryView({ view: 'portal_raw_ids', args: argsOf(search), columns, rowsMax: 1_000 });
  return new Map(rows.map(({ identityId, id }) => [identityId, search.idAccess === 'raw ids' ? id : maskId(id)]));
}
