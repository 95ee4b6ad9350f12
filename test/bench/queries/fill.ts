import { type Engine, waitForMerges } from '../clickhouse.ts';
import type { Range } from '../figure.ts';

/** Fraction of people who play during the whole history. The rest start over time and play less every week. */
const REGULARS_FRACTION = 0.3;
const ROWS_PER_PERSON = 100;
const BLOCK_ROWS = 20;
const RESENT_AFTER_MAX = 1_000;
const SESSIONS_PER_LOGIN = 10;
/** Greater than the topic's partition numbers, so that offsets do not collide with a writer's rows. */
export const FIRST_PARTITION = 100;
export const DAYS = 60;
export const DAY_MS = 86_400_000;

export type Game = ReturnType<typeof createGame>;

export function createGame(environmentId: string, rows: number) {
  const endMs = Date.now() - (Date.now() % DAY_MS);
  const people = Math.round(rows / ROWS_PER_PERSON);
  return { environmentId, rows, people, startMs: endMs - DAYS * DAY_MS, endMs };
}

/** Event names and their frequency per thousand. Page messages have no event name. */
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
  const cases = Object.entries(NAMES).map(([name, frequency]) => {
    below += frequency;
    return `${numberOf('base', 6)} % 1000 < ${below}, '${name}'`;
  });
  return `multiIf(${cases.join(', ')}, '')`;
}

/** Returns SQL for a person's ids and keys. `person` is a column name or a number. */
export const idsOf = (person: string | number) => ({
  anonymousKey: `sipHash128('anonymous', toUInt32(${person}))`,
  userKey: `sipHash128('user', toUInt32(${person}))`,
  anonymousId: `toString(reinterpretAsUUID(MD5(concat('anonymous ', toString(toUInt32(${person}))))))`,
  userId: `concat('user-', toString(toUInt32(${person})))`,
});

/** One row in 100 is a copy of an earlier row, with a later receive time. Without the type, an earlier row has another hash. */
const BASE = `if(number > ${RESENT_AFTER_MAX} AND ${numberOf('number', 1)} % 100 = 0,
  toUInt64(number - 1 - ${numberOf('number', 2)} % ${RESENT_AFTER_MAX}), number)`;

const PAGES = `concat('/', ${oneOf('base', 11, ['arena', 'store', 'profile', 'guild', 'news', 'help'])},
  multiIf(${numberOf('base', 12)} % 3 = 0, concat('/', toString(${numberOf('base', 13)} % 5000)),
    ${numberOf('base', 12)} % 3 = 1, '/list', ''))`;
const PROPERTIES = `concat('{"level":', toString(${numberOf('base', 14)} % 100), ',"mode":"', ${oneOf('base', 15, ['ranked', 'casual', 'duel', 'raid'])},
  '","map":"', ${oneOf('base', 16, ['forest', 'desert', 'harbour', 'castle', 'ruins'])}, '","score":', toString(${numberOf('base', 17)} % 100000),
  ',"seconds":', toString(${numberOf('base', 18)} % 1000), '}')`;

export function rowsOf({ rows, people, startMs, endMs }: Game, { first, count }: Range): string {
  const regulars = Math.round(people * REGULARS_FRACTION);
  const blocks = Math.ceil(rows / BLOCK_ROWS);
  const random = (salt: number) => `((${numberOf('session', salt)} % 1000000) / 1000000)`;
  const newcomer = `${regulars} + floor(${people - regulars} * (block / ${blocks}) * (1 - pow(${random(3)}, 3)))`;
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
      ${numberOf('session', 7)} % ${SESSIONS_PER_LOGIN} = 0 AS logged_in,
      toInt64(${startMs} + block * ${(endMs - startMs) / blocks} + step * 40000 + ${numberOf('base', 8)} % 30000) AS happened_ms
    FROM (
      SELECT number, ${BASE} AS base, intDiv(base, ${BLOCK_ROWS}) AS block, 1 + ${numberOf('block', 9)} % ${BLOCK_ROWS - 1} AS cut,
        base % ${BLOCK_ROWS} >= cut AS second, 2 * block + second AS session, base % ${BLOCK_ROWS} - if(second, cut, 0) AS step
      FROM numbers(${first}, ${count})))`;
}

// The schema of the best-known open-source product analytics on ClickHouse. A row contains the person at ingestion
// time; an override table contains later merges of persons. Only ClickHouse's merges remove duplicate rows.
const EVENTS = `CREATE TABLE bench_peer_events
(
    uuid UUID, event LowCardinality(String), properties String CODEC(ZSTD(3)), timestamp DateTime64(6, 'UTC'), team_id Int64,
    distinct_id String, created_at DateTime64(6, 'UTC'), person_id UUID,
    session_id String MATERIALIZED JSONExtractString(properties, '$session_id'),
    current_url String MATERIALIZED JSONExtractString(properties, '$current_url'),
    pathname String MATERIALIZED JSONExtractString(properties, '$pathname'),
    _timestamp DateTime, _offset UInt64, _partition UInt64,
    INDEX kafka_timestamp _timestamp TYPE minmax GRANULARITY 3,
    INDEX session session_id TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(_timestamp)
PARTITION BY toYYYYMM(timestamp)
ORDER BY (team_id, toDate(timestamp), event, cityHash64(distinct_id), cityHash64(uuid))
SAMPLE BY cityHash64(distinct_id)`;

const OVERRIDES = `CREATE TABLE bench_peer_overrides
(team_id Int64, distinct_id String, person_id UUID, version Int64)
ENGINE = ReplacingMergeTree(version) ORDER BY (team_id, distinct_id) SETTINGS index_granularity = 512`;

const TEAM = 1;

export async function createPeerTables(engine: Engine): Promise<void> {
  await engine.query(EVENTS);
  await engine.query(OVERRIDES);
}

/** @param rows a query from `rowsOf` */
async function fillPeerEvents(engine: Engine, rows: string, settings: string): Promise<void> {
  await engine.query(`INSERT INTO bench_peer_events (uuid, event, properties, timestamp, team_id, distinct_id, created_at, person_id,
    _timestamp, _offset, _partition)
  SELECT message_id, if(event_name = '', '$pageview', event_name),
    concat('{"$session_id":"', session_id, '","$current_url":"', page_url, '","$pathname":"', page_path, '","$referrer":"', page_referrer,
      '","$lib":"', surface, '","$lib_version":"2.5.0","$locale":"en-US","$raw_user_agent":"Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/141.0.0.0",', substring(properties, 2)),
    event_time, ${TEAM}, if(user_id = '', anonymous_id, user_id), received_at, reinterpretAsUUID(identity_key),
    received_at, intDiv(number, 6), number % 6
  FROM (${rows}) ${settings}`);
}

/** @param rows selects the members of persons; a member whose key is the person key needs no override */
async function fillPeerOverrides(engine: Engine, rows: string): Promise<void> {
  await engine.query(`INSERT INTO bench_peer_overrides (team_id, distinct_id, person_id, version)
    SELECT ${TEAM}, id, reinterpretAsUUID(person_key), version FROM (${rows}) WHERE identity_key != person_key`);
}

/** Selects the peer's rows with the column names of `events`. @param people adds a column with the person */
export function peerRows({ where, people }: { where: string; people: boolean }): string {
  const columns = `event.uuid AS message_id, event.event AS event_name, event.timestamp AS event_time, event.session_id AS session_id,
    event.pathname AS page_path, event.current_url AS page_url, event.properties AS properties, event.distinct_id AS distinct_id`;
  const rows = `bench_peer_events AS event`;
  const filter = `WHERE event.team_id = ${TEAM}${where === '' ? '' : ` AND ${where}`}`;
  if (!people) return `(SELECT ${columns} FROM ${rows} ${filter})`;
  return `(SELECT ${columns}, if(notEmpty(override.distinct_id), override.person_id, event.person_id) AS person
    FROM ${rows} LEFT OUTER JOIN (
      SELECT argMax(person_id, version) AS person_id, distinct_id FROM bench_peer_overrides WHERE team_id = ${TEAM} GROUP BY distinct_id
    ) AS override ON event.distinct_id = override.distinct_id ${filter})`;
}

/** Rows per insert. Leaves few parts to merge, and uses about 1 GB of ClickHouse memory. */
const CHUNK_ROWS = 1_000_000;
const SETTINGS = `SETTINGS max_insert_threads = 2, max_threads = 2, max_partitions_per_insert_block = 100,
  max_insert_block_size = ${CHUNK_ROWS}, min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0`;
const FRESH_PAIRS = 250;

/** Inserts into `events` and the peer's table directly, because publishing to the log would be slow. */
export async function fillRows(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  for (let from = first; from < first + count; from += CHUNK_ROWS) {
    const rows = rowsOf(game, { first: from, count: Math.min(CHUNK_ROWS, first + count - from) });
    await engine.query(`${eventsStatement(game, rows)} ${SETTINGS}`);
    await fillPeerEvents(engine, rows, SETTINGS);
  }
}

export function eventsStatement({ environmentId }: Game, rows: string): string {
  return `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, identity_type, session_id, surface, library, library_version,
    user_agent, locale, page_url, page_path, page_referrer, properties, trace_id, kafka_partition, kafka_offset)
  SELECT '${environmentId}', if(event_name = '', 'page', 'track'), event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, if(user_id = '', '', 'steam'), session_id, surface, concat('audience-', surface), '2.5.0',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/141.0.0.0', 'en-US', page_url, page_path, page_referrer, properties,
    lower(hex(sipHash128(number))), ${FIRST_PARTITION} + number % 6, intDiv(number, 6)
  FROM (${rows})`;
}

// Links each person's visitor and user identity. The smaller key becomes the person key; the larger gets an override.
export async function linkPeople(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  await insertOverrides(engine, game, {
    groups: `SELECT number, [${membersOf('number').join(', ')}] AS members FROM numbers(${first}, ${count})`,
    version: '1 + number',
    storedAt: 'now64(3) - INTERVAL 1 HOUR',
  });
}

/** The people who are merged last in the first part of the history (`early`) and in the whole history (`late`). */
export const pairsOf = ({ people }: Game): { readonly early: Range; readonly late: Range } => {
  const first = Math.floor(people * 0.45);
  return { early: { first: first + 2 * FRESH_PAIRS, count: FRESH_PAIRS }, late: { first, count: FRESH_PAIRS } };
};

/** Merges pairs of people with decisions that the dictionary does not contain yet. */
export async function mergePairs(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  const members = [...membersOf('one'), ...membersOf('one + 1')];
  await insertOverrides(engine, game, {
    groups: `SELECT number, toUInt32(${first} + 2 * number) AS one, [${members.join(', ')}] AS members FROM numbers(${count})`,
    version: `${2 ** 40} + number`,
    storedAt: 'now64(3)',
  });
}

function membersOf(person: string): string[] {
  const { anonymousKey, userKey, anonymousId, userId } = idsOf(person);
  return [`(${anonymousKey}, 'anonymous', ${anonymousId})`, `(${userKey}, 'steam', ${userId})`];
}

/** @param groups selects one row per person, with all members */
async function insertOverrides(
  engine: Engine,
  { environmentId }: Game,
  { groups, version, storedAt }: { groups: string; version: string; storedAt: string },
): Promise<void> {
  const rows = `SELECT '${environmentId}' AS environment_id, member.1 AS identity_key,
    arrayMin(key -> key.1, members) AS person_key, member.2 AS kind, ${storedAt} AS linked_at, ${storedAt} AS stored_at,
    toUInt64(${version}) AS version, member.3 AS id
  FROM (${groups}) ARRAY JOIN members AS member`;
  const columns = 'environment_id, identity_key, person_key, kind, linked_at, version, stored_at';
  await engine.query(`INSERT INTO identity_overrides (${columns}) SELECT ${columns} FROM (${rows})`);
  await fillPeerOverrides(engine, rows);
}

export async function waitUntilMerged(engine: Engine, database: string): Promise<void> {
  await waitForMerges(engine, database, 3_600_000);
  await engine.query('SYSTEM RELOAD DICTIONARY identity_persons');
}
