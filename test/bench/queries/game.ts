import type { Range } from '../figure.ts';

/** Share of people who play all the time. The others start one by one and play less from week to week. */
const REGULARS_SHARE = 0.3;
const ROWS_OF_A_PERSON = 100;
const BLOCK_ROWS = 20;
/** A resent message is at most this many rows after the first copy. */
const RESENT_AFTER_MAX = 1_000;
const LOGGED_IN_OF = 10;
/** Greater than any partition of the topic, so that rows of a writer differ from these. */
export const FIRST_PARTITION = 100;
export const DAYS = 60;
export const DAY_MS = 86_400_000;

export interface Game {
  readonly environmentId: string;
  readonly rows: number;
  readonly people: number;
  /** Epoch milliseconds. The span is `DAYS` whole days, and the last has ended. */
  readonly startMs: number;
  readonly endMs: number;
}

export function createGame(environmentId: string, rows: number): Game {
  const endMs = Date.now() - (Date.now() % DAY_MS);
  const people = Math.round(rows / ROWS_OF_A_PERSON);
  return { environmentId, rows, people, startMs: endMs - DAYS * DAY_MS, endMs };
}

/** Event names and their shares per thousand. Pages have none. */
const NAMES = {
  '': 300,
  level_started: 180,
  level_finished: 140,
  item_equipped: 100,
  match_started: 80,
  match_finished: 60,
  store_viewed: 50,
  message_sent: 40,
  item_bought: 25,
  friend_invited: 12,
  purchase: 8,
  error: 5,
} as const;
export type EventName = keyof typeof NAMES;

const numberOf = (of: string, salt: number) => `cityHash64(${of}, ${salt})`;
const oneOf = (of: string, salt: number, choices: readonly string[]) =>
  `[${choices.map((choice) => `'${choice}'`).join(', ')}][1 + ${numberOf(of, salt)} % ${choices.length}]`;

function eventName(): string {
  let below = 0;
  const cases = Object.entries(NAMES).map(([name, share]) => {
    below += share;
    return `${numberOf('base', 6)} % 1000 < ${below}, '${name}'`;
  });
  return `multiIf(${cases.join(', ')}, '')`;
}

/** Ids and keys of a person: `person` is the name of a column or a number. */
export const idsOf = (person: string | number) => ({
  anonymousKey: `sipHash128('anonymous', toUInt32(${person}))`,
  userKey: `sipHash128('user', toUInt32(${person}))`,
  anonymousId: `toString(reinterpretAsUUID(MD5(concat('anonymous ', toString(toUInt32(${person}))))))`,
  userId: `concat('user-', toString(toUInt32(${person})))`,
});

/** A resent copy has the content of an earlier row, from which all but its receive time is computed. */
const BASE = `if(number > ${RESENT_AFTER_MAX} AND ${numberOf('number', 1)} % 100 = 0,
  number - 1 - ${numberOf('number', 2)} % ${RESENT_AFTER_MAX}, number)`;

const PAGES = `concat('/', ${oneOf('base', 11, ['arena', 'store', 'profile', 'guild', 'news', 'help'])},
  multiIf(${numberOf('base', 12)} % 3 = 0, concat('/', toString(${numberOf('base', 13)} % 5000)),
    ${numberOf('base', 12)} % 3 = 1, '/list', ''))`;
const PROPERTIES = `concat('{"level":', toString(${numberOf('base', 14)} % 100), ',"mode":"', ${oneOf('base', 15, ['ranked', 'casual', 'duel', 'raid'])},
  '","map":"', ${oneOf('base', 16, ['forest', 'desert', 'harbour', 'castle', 'ruins'])}, '","score":', toString(${numberOf('base', 17)} % 100000),
  ',"seconds":', toString(${numberOf('base', 18)} % 1000), '}')`;

/** Rows of the log by number, in order of time, with the columns that all tables share. */
export function rowsOf({ rows, people, startMs, endMs }: Game, { first, count }: Range): string {
  const regulars = Math.round(people * REGULARS_SHARE);
  const blocks = Math.ceil(rows / BLOCK_ROWS);
  const share = (salt: number) => `((${numberOf('session', salt)} % 1000000) / 1000000)`;
  const newcomer = `${regulars} + floor(${people - regulars} * (block / ${blocks}) * (1 - pow(${share(3)}, 3)))`;
  const { anonymousKey, userKey, anonymousId, userId } = idsOf('person');
  return `
  SELECT *, ${anonymousKey} AS anonymous_key, if(logged_in, ${userKey}, toFixedString('', 16)) AS user_key,
    if(logged_in, user_key, anonymous_key) AS identity_key,
    ${anonymousId} AS anonymous_id, if(logged_in, ${userId}, '') AS user_id,
    fromUnixTimestamp64Milli(happened_ms, 'UTC') AS event_time,
    fromUnixTimestamp64Milli(happened_ms + 1000 + (number - base) * 1000, 'UTC') AS received_at,
    reinterpretAsUUID(sipHash128(base)) AS message_id, ${eventName()} AS event_name,
    toString(reinterpretAsUUID(sipHash128('session', session))) AS session_id,
    if(person % 5 < 3, 'web', 'unity') AS surface, ${PAGES} AS page_path,
    concat('https://play.example.com', page_path, if(${numberOf('session', 19)} % 10 < 3,
      concat('?utm_source=ads&utm_campaign=', ${oneOf('session', 20, ['spring', 'launch', 'creators', 'esports', 'winback', 'brand'])}), '')) AS page_url,
    if(step = 0 AND ${numberOf('session', 21)} % 2 = 0, concat('https://', ${oneOf('session', 22, ['search', 'video', 'social'])}, '.example.net/'), '') AS page_referrer,
    ${PROPERTIES} AS properties
  FROM (
    SELECT *, toUInt32(if(${numberOf('session', 4)} % 2 = 0, ${numberOf('session', 5)} % ${regulars}, ${newcomer})) AS person,
      ${numberOf('session', 7)} % ${LOGGED_IN_OF} = 0 AS logged_in,
      toInt64(${startMs} + block * ${(endMs - startMs) / blocks} + step * 40000 + ${numberOf('base', 8)} % 30000) AS happened_ms
    FROM (
      SELECT number, ${BASE} AS base, intDiv(base, ${BLOCK_ROWS}) AS block, 1 + ${numberOf('block', 9)} % ${BLOCK_ROWS - 1} AS cut,
        base % ${BLOCK_ROWS} >= cut AS second, 2 * block + second AS session, base % ${BLOCK_ROWS} - if(second, cut, 0) AS step
      FROM numbers(${first}, ${count})))`;
}
