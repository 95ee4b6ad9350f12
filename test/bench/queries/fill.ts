import { type Engine, waitForMerges } from '../clickhouse.ts';
import type { Range } from '../figure.ts';
import { FIRST_PARTITION, type Game, idsOf, rowsOf } from './game.ts';
import { fillPeerEvents, fillPeerOverrides } from './peer.ts';

/** Rows of one insert: few parts to merge, and about a gigabyte of ClickHouse's memory. */
const CHUNK_ROWS = 1_000_000;
const SETTINGS = `SETTINGS max_insert_threads = 2, max_threads = 2, max_partitions_per_insert_block = 100,
  max_insert_block_size = ${CHUNK_ROWS}, min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0`;
const FRESH_PAIRS = 250;

/** Fills `events` and the peer's table directly, because the log would be slow. */
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

/** Links the visitor and the user of some people. The smaller key becomes the root, the other identity gets an override. */
export async function linkPeople(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  await insertOverrides(engine, game, {
    groups: `SELECT number, [${membersOf('number').join(', ')}] AS members FROM numbers(${first}, ${count})`,
    version: '1 + number',
    storedAt: 'now64(3) - INTERVAL 1 HOUR',
  });
}

/** Two ranges of people who are joined last: for the first part of history, and for its whole. */
export const pairsOf = ({ people }: Game): { readonly early: Range; readonly late: Range } => {
  const first = Math.floor(people * 0.45);
  return { early: { first: first + 2 * FRESH_PAIRS, count: FRESH_PAIRS }, late: { first, count: FRESH_PAIRS } };
};

/** Joins pairs of people, by decisions later than everything that the dictionary has loaded. */
export async function linkPairs(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
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

/** @param groups a query with one row for each person and all its members */
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

/** Waits for ClickHouse's merges, and reloads the dictionary of persons. */
export async function settle(engine: Engine, database: string): Promise<void> {
  await waitForMerges(engine, database, 3_600_000);
  await engine.query('SYSTEM RELOAD DICTIONARY identity_persons');
}
