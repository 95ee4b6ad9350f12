import { createHash } from 'node:crypto';
import { createIdentityKeyer } from '@playline/people';
import { createEngine, type Engine, waitForMerges, waitForRows } from '../clickhouse.ts';
import { type Bench, type Range, scaled } from '../figure.ts';
import { prepareLinks } from '../link-facts.ts';
import { publish } from '../prepared-records.ts';
import { waitFor } from '../processes.ts';

const ROWS = 10_000_000;
const ROWS_PER_PERSON = 100;
export const NAMES = 40;
export const DAYS = 270;
const DAY_MS = 86_400_000;
/** Rows per insert. Leaves few parts to merge, and uses about 1 GB of ClickHouse memory. */
const CHUNK_ROWS = 1_000_000;
/** Greater than the topic's partition numbers, so that offsets do not collide with the writer's rows. */
const FIRST_PARTITION = 100;
/** A typed identify message creates two links: visitor to user, and typed user id to the same id without a type. */
const LINKS_PER_PERSON = 2;
const LINKED_MAX_MS = 300_000;
const FILLED_MAX_MS = 600_000;

export type People = Awaited<ReturnType<typeof fillEvents>>;

const userIdOf = (person: number) => `user-${person}`;

function anonymousIdOf(person: number): string {
  const digits = createHash('md5').update(`anonymous ${person}`).digest('hex');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

// Inserts into `events` directly, because publishing to the log would be slow. Each person has 100 rows, distributed
// evenly over event names and days, with the keys that the gateway would compute. `bench_people` maps people to keys.
export async function fillEvents(bench: Bench) {
  const engine = createEngine(bench);
  const rows = scaled(bench, ROWS);
  const count = Math.round(rows / ROWS_PER_PERSON);
  await engine.query(
    'CREATE TABLE bench_people (person UInt32, user_key FixedString(16), anonymous_key FixedString(16), anonymous_id String) ENGINE = Memory',
  );
  await engine.insert('INSERT INTO bench_people FORMAT RowBinary', encodePeople(bench, count));
  const endMs = Date.now() - (Date.now() % DAY_MS);
  const shape = { environmentId: bench.environmentId, people: count, rows, startMs: endMs - DAYS * DAY_MS };
  for (let first = 0; first < rows; first += CHUNK_ROWS) await engine.query(fillStatement(shape, first));
  await waitForRows(engine, { table: 'events', rows });
  await waitForMerges(engine, bench.database, FILLED_MAX_MS);
  return { count, rows, anonymousIdOf };
}

function encodePeople({ environment, environmentId }: Bench, count: number): Buffer {
  const keyOf = createIdentityKeyer(Buffer.from(environment.IDENTITY_PEPPER ?? '', 'hex'));
  const rows = Array.from({ length: count }, (_, person) => {
    const number = Buffer.alloc(4);
    number.writeUInt32LE(person);
    const id = Buffer.from(anonymousIdOf(person));
    const keys = [keyOf(environmentId, 'steam', userIdOf(person)), keyOf(environmentId, 'anonymous', id.toString())];
    return Buffer.concat([number, ...keys, Buffer.from([id.length]), id]);
  });
  return Buffer.concat(rows);
}

function fillStatement(
  { environmentId, people, rows, startMs }: { environmentId: string; people: number; rows: number; startMs: number },
  first: number,
): string {
  const hash = (salt: number) => `cityHash64(number, ${salt})`;
  const count = Math.min(CHUNK_ROWS, rows - first);
  return `INSERT INTO events (environment_id, type, event_name, event_time, received_at, message_id, identity_key,
    anonymous_key, user_key, anonymous_id, user_id, identity_type, device_id, session_id, surface, library,
    library_version, user_agent, locale, page_url, page_path, page_title, properties, trace_id, kafka_partition, kafka_offset)
  SELECT '${environmentId}', 'track', concat('event_', toString(${hash(2)} % ${NAMES})), happened, happened + INTERVAL 1 SECOND,
    reinterpretAsUUID(sipHash128(number)), user_key, anonymous_key, user_key,
    anonymous_id, concat('user-', toString(person)), 'steam', toString(reinterpretAsUUID(MD5(concat('d', toString(person))))),
    toString(reinterpretAsUUID(MD5(concat(toString(person), toString(toDate(happened)))))), 'web', 'audience-web', '2.5.0',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/141.0.0.0', 'en-US', 'https://play.example.com/arena/season-4',
    '/arena/season-4', 'Arena', concat('{"level":', toString(${hash(7)} % 100), ',"mode":"ranked","weapon":"bow","score":',
      toString(${hash(8)} % 100000), ',"seconds":', toString(${hash(9)} % 1000), '}'),
    lower(hex(sipHash128(number, 1))), ${FIRST_PARTITION} + number % 6, intDiv(number, 6)
  FROM (SELECT number, toUInt32(${hash(3)} % ${people}) AS person,
    fromUnixTimestamp64Milli(toInt64(${startMs} + number * ${(DAYS * DAY_MS) / rows}), 'UTC') AS happened
    FROM numbers(${first}, ${count})) AS generated
  INNER JOIN bench_people USING person
  SETTINGS max_insert_threads = 1, max_threads = 2, max_insert_block_size = ${CHUNK_ROWS},
    min_insert_block_size_rows = ${CHUNK_ROWS}, min_insert_block_size_bytes = 0, max_block_size = 1000000`;
}

/** Publishes a link from each person's anonymous id to the user id, and waits until all decisions are stored. */
export async function linkPeople(bench: Bench, people: People): Promise<void> {
  const engine = createEngine(bench);
  const pairs = Array.from({ length: people.count }, (_, person) => {
    return { link: 'identify', from: anonymousIdOf(person), to: userIdOf(person) } as const;
  });
  await publish(bench, await prepareLinks(bench, pairs));
  const expected = LINKS_PER_PERSON * people.count;
  const areStored = async () => (await engine.queryNumber('SELECT count() FROM identity_links')) >= expected;
  await waitFor(`${expected} decisions are stored`, areStored, { maxMs: LINKED_MAX_MS });
}

export async function countRowsOf(engine: Engine, { first, count }: Range): Promise<{ events: number; other: number }> {
  const keys = (column: string) =>
    `(SELECT ${column} FROM bench_people WHERE person >= ${first} AND person < ${first + count})`;
  const any = (...columns: string[]) =>
    columns.map((column) => `${column} IN ${keys('user_key')} OR ${column} IN ${keys('anonymous_key')}`).join(' OR ');
  const [events = Number.NaN, other = Number.NaN] = await engine.queryNumbers(`
    SELECT (SELECT count() FROM events WHERE ${any('identity_key', 'anonymous_key')}),
    (SELECT count() FROM identity_links WHERE ${any('a_key', 'b_key')})
      + (SELECT count() FROM identity_overrides WHERE ${any('identity_key')})
    FORMAT TSV`);
  return { events, other };
}
