import { type Engine, waitForMerges } from '../clickhouse.ts';
import { type Game, idsOf, type Range, rowsOf } from './game.ts';
import { fillPeerEvents, fillPeerOverrides } from './peer.ts';

/** Rows of one insert: few parts to merge, and some gigabyte of the engine's memory. */
const CHUNK_ROWS = 1_000_000;
/** Behind those of the topic: nothing that a writer stores looks like one of these rows. */
const FIRST_PARTITION = 100;
const SETTINGS = `SETTINGS max_insert_threads = 2, max_threads = 2, max_partitions_per_insert_block = 100,
  max_insert_block_size = ${CHUNK_ROWS}, min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0`;
/** Pairs of people whose links were decided after everything else. */
const FRESH_PAIRS = 250;

/** Fills `events` and the peer's table past the log, for speed, with some of a game's rows. */
export async function fillRows(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  for (let from = first; from < first + count; from += CHUNK_ROWS) {
    const rows = rowsOf(game, { first: from, count: Math.min(CHUNK_ROWS, first + count - from) });
    await engine.ask(eventsStatement(game, rows));
    await fillPeerEvents(engine, rows, SETTINGS);
  }
}

function eventsStatement({ environmentId }: Game, rows: string): string {
  return `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, identity_type, session_id, surface, library, library_version,
    user_agent, locale, page_url, page_path, page_referrer, properties, trace_id, kafka_partition, kafka_offset)
  SELECT '${environmentId}', if(event_name = '', 'page', 'track'), event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, if(user_id = '', '', 'steam'), session_id, surface, concat('audience-', surface), '2.5.0',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/141.0.0.0', 'en-US', page_url, page_path, page_referrer, properties,
    lower(hex(sipHash128(number))), ${FIRST_PARTITION} + number % 6, intDiv(number, 6)
  FROM (${rows}) ${SETTINGS}`;
}

/** Joins the visitor and the user of some people: of the two, one belongs to somebody else and one to itself. */
export async function linkPeople(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  await insertOverrides(engine, game, {
    groups: `SELECT number, [${membersOf('number').join(', ')}] AS members FROM numbers(${first}, ${count})`,
    ...{ version: '1 + number', storedAt: 'now64(3) - INTERVAL 1 HOUR' },
  });
}

/** Pairs of people who are joined last, twice as many: for history as it is at first, and for all of it. */
export const pairsOf = ({ people }: Game): { readonly early: Range; readonly late: Range } => {
  const first = Math.floor(people * 0.45);
  return { early: { first: first + 2 * FRESH_PAIRS, count: FRESH_PAIRS }, late: { first, count: FRESH_PAIRS } };
};

/** Joins two people each, neighbours by number: decisions that are younger than anything that was loaded before. */
export async function linkPairs(engine: Engine, game: Game, { first, count }: Range): Promise<void> {
  const members = [...membersOf('one'), ...membersOf('one + 1')];
  await insertOverrides(engine, game, {
    groups: `SELECT number, toUInt32(${first} + 2 * number) AS one, [${members.join(', ')}] AS members FROM numbers(${count})`,
    ...{ version: `${2 ** 40} + number`, storedAt: 'now64(3)' },
  });
}

/** Key, kind and id of the two identities of a person. */
function membersOf(person: string): string[] {
  const { anonymousKey, userKey, anonymousId, userId } = idsOf(person);
  return [`(${anonymousKey}, 'anonymous', ${anonymousId})`, `(${userKey}, 'steam', ${userId})`];
}

/** @param groups a row a person, with all its members */
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
  await engine.ask(`INSERT INTO identity_overrides (${columns}) SELECT ${columns} FROM (${rows})`);
  await fillPeerOverrides(engine, rows);
}

/** Rows and merges of a hundred million take half an hour. */
const MERGES_MAX_MS = 3_600_000;

/** Lets the engine end its merges, and loads who is who: what is linked later comes on top of it. */
export async function settle(engine: Engine, database: string): Promise<void> {
  await waitForMerges(engine, database, MERGES_MAX_MS);
  await engine.ask('SYSTEM RELOAD DICTIONARY identity_persons');
}
