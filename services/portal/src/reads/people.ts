import type { QueryOptions, QueryRows } from '@playline/stores';
import {
  exceedsReadLimits,
  type IdAccess,
  idFor,
  millis,
  number,
  queryView,
  type Row,
  readPages,
  text,
} from './query-view.ts';

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
  /** The last entry of the previous page, or a time after the newest entry and no id. */
  readonly after: TimelinePosition;
  readonly entriesMax: number;
}

export interface TimelinePage {
  /** Newest first. */
  readonly entries: readonly TimelineEntry[];
  readonly next: TimelinePosition | null;
}

const DAY_MS = 86_400_000;
/** How far back each query for messages reaches, so that it reads only recent days of a person with many messages. */
const STEPS_MS = [31 * DAY_MS, Number.POSITIVE_INFINITY];

/** Reads a page of what happened to a person. */
export async function readTimeline(
  query: QueryRows,
  { show, after, entriesMax, ...search }: TimelineSearch,
  options?: QueryOptions,
): Promise<TimelinePage> {
  for (const step of show === '' || show === 'events' ? STEPS_MS : STEPS_MS.slice(-1)) {
    const since = Math.max(0, after.happenedMs - step);
    const range = { since, until: after.happenedMs, before: after.id, entries: entriesMax + 1 };
    const viewQuery = {
      view: 'portal_timeline',
      args: Object.assign(range, argsOf(search), { show }),
      columns: TIMELINE_COLUMNS,
      tail: 'ORDER BY happened_at DESC, id DESC',
      rowsMax: entriesMax + 1,
    };
    const found = await queryView<TimelineEntry>(query, viewQuery, options);
    if (found.length > entriesMax) return { entries: found.slice(0, -1), next: found[entriesMax - 1] ?? null };
    if (since === 0) return { entries: found, next: null };
  }
  return { entries: [], next: null };
}

const ENTRIES_PER_QUERY = 1_000;

/** Yields pages of entries, newest first. @returns the position at which the result was truncated, or null */
export function readManyEntries(
  timeline: (search: TimelineSearch) => Promise<TimelinePage>,
  search: Omit<TimelineSearch, 'entriesMax'>,
  max: number,
): AsyncGenerator<readonly TimelineEntry[], TimelinePosition | null> {
  return readPages(
    async (entriesMax, after = search.after) => {
      const { entries, next } = await timeline({ ...search, entriesMax, after });
      return { lines: entries, next };
    },
    { linesMax: max, perQuery: ENTRIES_PER_QUERY },
  );
}

const PROFILE_COLUMNS = {
  firstSeenMs: millis('first_seen_at'),
  lastSeenMs: millis('last_seen_at'),
  firstSurface: text('first_surface'),
  // A JSON object; empty if no message contains traits.
  traits: text('traits'),
};
const COUNT_COLUMNS = { events: number('events'), sessions: number('sessions'), lastSurface: text('last_surface') };

export interface PersonProfile extends Row<typeof PROFILE_COLUMNS> {
  /** Null if there are too many messages to count. */
  readonly counts: Row<typeof COUNT_COLUMNS> | null;
}

/** Returns null if the identities have no events. */
export async function readProfile(
  query: QueryRows,
  search: IdentitySearch,
  options?: QueryOptions,
): Promise<PersonProfile | null> {
  const args = argsOf(search);
  const countQuery = { view: 'portal_person_counts', args, columns: COUNT_COLUMNS, rowsMax: 1 };
  const counted = queryView<Row<typeof COUNT_COLUMNS>>(query, countQuery, options).catch((fault: unknown) => {
    if (exceedsReadLimits(fault)) return [];
    throw fault;
  });
  const profileQuery = { view: 'portal_profile', args, columns: PROFILE_COLUMNS, rowsMax: 1 };
  const [[profile], [counts = null]] = await Promise.all([
    queryView<Row<typeof PROFILE_COLUMNS>>(query, profileQuery, options),
    counted,
  ]);
  return profile === undefined ? null : { ...profile, counts };
}

/** Returns those of the identities about which ClickHouse stores data. */
export async function readKnownIdentities(
  query: QueryRows,
  search: IdentitySearch,
  options?: QueryOptions,
): Promise<ReadonlySet<string>> {
  const columns = { identityId: text('identity_id') };
  const viewQuery = { view: 'portal_known_identities', args: argsOf(search), columns, rowsMax: 1_000 };
  const rows = await queryView<{ identityId: string }>(query, viewQuery, options);
  return new Set(rows.map(({ identityId }) => identityId));
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
