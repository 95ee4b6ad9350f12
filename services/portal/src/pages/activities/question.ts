import { type CollectionRecord, collectionsOf } from '@playline/access-keys';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { NO_MOMENT, parseMoment } from '../../frame/moment.ts';
import type { Visit } from '../../frame/page.ts';
import { placeOf } from '../../frame/place.ts';
import type { ActivityQuestion } from '../../reads/index.ts';

/** What somebody asks of a page of activities; '' says nothing. */
export interface Asked {
  /** Collections that are linked to the environment. */
  readonly linked: readonly CollectionRecord[];
  /** Id of one of them. */
  readonly collection: string;
  readonly type: string;
  readonly tokenId: string;
  /** In UTC: `2026-11-01 10:00`. */
  readonly since: string;
  readonly until: string;
}

/** Behind all times that an activity may have been indexed at. */
const END_OF_TIME_MS = Date.UTC(2256, 0);
/** As the log takes them. */
const TOKEN_ID = /^\d{1,78}$/;
/** Without an id where a search ran out of time between two activities: all that is older. */
const PLACE = /^(\d{1,16})\.((?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?)$/;

/** What the address of a page says, of the contracts that are linked to its environment now. */
export function toAsked(visit: Visit, records: readonly CollectionRecord[]): Asked {
  const { project, environment } = placeOf(visit);
  const text = (name: string) => (visit.query.get(name) ?? '').trim();
  const linked = collectionsOf(records, project.id).filter(
    ({ state, environmentId }) => state === 'linked' && environmentId === environment.id,
  );
  return {
    linked,
    collection: linked.find(({ id }) => id === text('collection'))?.id ?? '',
    type: ACTIVITY_TYPES.find((each) => each === text('kind')) ?? '',
    tokenId: text('token'),
    since: text('since'),
    until: text('until'),
  };
}

/** The same as it stands in addresses; of what was typed only what can be asked for. */
export function toParams({ collection, type, tokenId, since, until }: Asked): URLSearchParams {
  const given = Object.entries({ collection, kind: type, token: tokenId, since, until });
  return new URLSearchParams(given.filter(([, value]) => value !== ''));
}

/** Whether anything narrows what is shown. */
export const isNarrowed = (asked: Asked): boolean => toParams(asked).size > 0;

/**
 * The question of a page, which is about nothing but linked contracts.
 * @param nowMs epoch milliseconds
 * @returns words about what cannot be looked for
 */
export function toQuestion(asked: Asked, { query }: Visit, nowMs: number): ActivityQuestion | string {
  const { linked, collection, type, tokenId } = asked;
  const [since, until] = [parseMoment(asked.since), parseMoment(asked.until)];
  if (since === undefined || until === undefined) return NO_MOMENT;
  if (tokenId !== '' && !TOKEN_ID.test(tokenId)) return 'Give the id of a token in decimal digits, such as 4711.';
  const [sinceMs, untilMs] = [since ?? 0, Math.min(until ?? END_OF_TIME_MS, END_OF_TIME_MS)];
  if (sinceMs >= untilMs) return 'The span ends in front of its beginning.';
  const contracts = linked.filter(({ id }) => collection === '' || id === collection);
  const [, updatedUs, id] = PLACE.exec(query.get('after') ?? '') ?? [];
  const before = id === undefined ? {} : { before: { updatedUs: Number(updatedUs), id } };
  return { nowMs, contracts, type, tokenId, sinceMs, untilMs, ...before };
}
