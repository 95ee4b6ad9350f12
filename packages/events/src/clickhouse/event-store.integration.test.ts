import { randomBytes } from 'node:crypto';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { frameRecord, type MessageRecord, messageRecordCodec } from '@playline/contracts';
import { createTables, openOwnDatabase, testStores } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EVENT_FIELDS, EVENT_TABLE_COLUMNS } from '../columns.ts';
import { createRowPlan } from '../row/plan.ts';
import { RowBuffer } from '../row/row-buffer.ts';
import { arbitraryRecord } from '../row/test/arbitrary-record.ts';
import { RowTranscoder } from '../row/transcoder.ts';
import { INSERT_SETTINGS, openEventStore } from './index.ts';

const { signal } = new AbortController();
const plan = createRowPlan(messageRecordCodec.schema);
const NOW_MS = 1_790_000_000_000;

function toBlock(records: readonly MessageRecord[], firstOffset = 0): Buffer {
  const out = new RowBuffer(1024);
  const transcoder = new RowTranscoder();
  for (const [index, record] of records.entries()) {
    const value = frameRecord(1, messageRecordCodec.encode(record));
    transcoder.add(out, plan, { value, partition: 2, offset: firstOffset + index });
  }
  return out.toBytes();
}

const { url, user, password } = testStores().clickhouse;
const database = `playline_test_${randomBytes(6).toString('hex')}`;
const target = { url, user, password, database };
const store = openEventStore(target);
let client: ClickHouseClient;

const readRows = async <T>(query: string, params: Record<string, unknown> = {}): Promise<T[]> =>
  (await client.query({ query, format: 'JSONEachRow', query_params: params })).json<T>();
const countRows = async (table: string, environment: string): Promise<number> => {
  const where = 'WHERE environment_id = {environment: String}';
  const query = `SELECT toUInt32(count()) AS n FROM ${table} ${where}`;
  return (await readRows<{ n: number }>(query, { environment }))[0]!.n;
};
const insert = (rows: Buffer, token: string) => store.insert({ table: 'events', rows, token, signal });
/** Creates a record in the given environment. Its time is fixed, so that the table has few partitions. */
const record = (changes: Partial<MessageRecord> & { environmentId: string }): MessageRecord => ({
  ...fc.sample(arbitraryRecord, { numRuns: 1, seed: 1 })[0]!,
  eventTime: NOW_MS,
  receivedAt: NOW_MS,
  messageId: randomBytes(16),
  ...changes,
});

beforeAll(async () => {
  await createTables(target);
  client = createClient({ url, username: user, password, database });
  await client.command({ query: 'SYSTEM STOP MERGES events' });
});
afterAll(async () => {
  await client.command({ query: `DROP DATABASE ${database} SYNC` });
  await client.close();
  await store.close();
});

it('events returns every value in every record unchanged', async () => {
  const select = EVENT_FIELDS.map(({ name, column, kind }) => {
    if (kind === 'uuid') return `replaceAll(toString(${column}), '-', '') AS ${name}`;
    if (kind === 'key') return `lower(hex(${column})) AS ${name}`;
    if (kind === 'time') return `toUnixTimestamp64Milli(${column}) AS ${name}`;
    // Compared as bits, because JSON has no infinities and no negative zero.
    if (kind === 'nullableDouble') return `toString(reinterpretAsUInt64(${column})) AS ${name}`;
    return `${column} AS ${name}`;
  });
  const where = 'kafka_partition = 2 AND kafka_offset >= {start: UInt64} ORDER BY kafka_offset';
  const query = `SELECT ${select.join(', ')} FROM events WHERE ${where}`;
  const toBits = (value: number) => String(new BigUint64Array(new Float64Array([value]).buffer)[0]);
  const toJson = (value: unknown) => (Buffer.isBuffer(value) ? value.toString('hex') : value);
  let start = 1_000_000;
  // Covers at most two months, because ClickHouse refuses inserts into too many partitions.
  const eventTimes = fc.integer({ min: NOW_MS - 86_400_000, max: NOW_MS });
  const records = fc.array(fc.tuple(arbitraryRecord, eventTimes), { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(records, async (generated) => {
      start += 1_000;
      const inserted = generated.map(([each, eventTime]) => ({ ...each, eventTime }));
      await insert(toBlock(inserted, start), `values|${start}`);
      const clickhouse_settings = { output_format_json_quote_64bit_integers: 0 as const };
      const found = await client.query({ query, format: 'JSONEachRow', query_params: { start }, clickhouse_settings });
      const rows = await found.json<Record<string, unknown>>();
      expect(rows).toEqual(
        inserted.map((each) => ({
          ...Object.fromEntries(Object.entries(each).map(([name, value]) => [name, toJson(value)])),
          screenDensity: each.screenDensity === null ? null : toBits(each.screenDensity),
        })),
      );
    }),
    { numRuns: runsOf({ quick: 8, all: 25 }) },
  );
});

it('a block is stored once per token, even if it is sent several times or contains two months', async () => {
  const environmentId = 'test-token';
  const rows = toBlock(Array.from({ length: 50 }, () => record({ environmentId })));
  for (let time = 0; time < 3; time++) await insert(rows, 'topic|2|0|49|events|1');
  expect(await countRows('events', environmentId)).toBe(50);
  await insert(rows, 'topic|2|0|49|events|2');
  expect(await countRows('events', environmentId)).toBe(100);
  const scope = { environmentId: 'test-months' };
  const block = toBlock([0, 40].map((days) => record({ ...scope, eventTime: NOW_MS - days * 86_400_000 })));
  for (let time = 0; time < 2; time++) await insert(block, 'months');
  expect(await countRows('events', scope.environmentId)).toBe(2);
});

it('events_exact shows the first copy of a resent message, and a different message with the same id separately', async () => {
  const environmentId = 'test-resent';
  const first = record({ environmentId, eventName: 'first', type: 'track' });
  const copy = { ...first, properties: '{"changed":true}', receivedAt: NOW_MS + 1000 };
  // Messages with the same id but a different name, time, type or owner.
  const others = [
    { ...first, eventName: 'second' },
    { ...first, eventTime: first.eventTime - 1 },
    { ...first, type: 'page' as const },
    { ...first, identityKey: randomBytes(16) },
  ];
  await insert(toBlock(others, 30), 'resent|3');
  await insert(toBlock([copy], 20), 'resent|2');
  await insert(toBlock([first], 10), 'resent|1');
  expect(await countRows('events', environmentId)).toBe(6);
  const read = () =>
    readRows(
      'SELECT event_name, toUInt32(kafka_offset) AS at FROM events_exact ' +
        'WHERE environment_id = {environmentId: String} ORDER BY at',
      { environmentId },
    );
  const expected = [
    { event_name: 'first', at: 10 },
    { event_name: 'second', at: 30 },
    ...[31, 32, 33].map((at) => ({ event_name: 'first', at })),
  ];
  expect(await read()).toEqual(expected);
  await client.command({ query: 'SYSTEM START MERGES events' });
  await client.command({ query: 'OPTIMIZE TABLE events FINAL' });
  await client.command({ query: 'SYSTEM STOP MERGES events' });
  expect(await countRows('events', environmentId)).toBe(5);
  expect(await read()).toEqual(expected);
});

it('events retains all copies within a block, and events_exact shows one copy', async () => {
  const environmentId = 'test-within-block';
  const first = record({ environmentId, eventTime: NOW_MS - 400 * 86_400_000 });
  const copies = [2, 0, 1].map((later) => ({ ...first, receivedAt: NOW_MS + later }));
  await insert(toBlock([...copies, { ...first, messageId: randomBytes(16) }]), 'within');
  expect(await countRows('events', environmentId)).toBe(4);
  const query = `SELECT toUnixTimestamp64Milli(received_at) - {now: Int64} AS later FROM events_exact
    WHERE environment_id = 'test-within-block' ORDER BY kafka_offset`;
  expect(await readRows(query, { now: NOW_MS })).toEqual([{ later: '0' }, { later: '0' }]);
  const pair = ['test-left', 'test-right'].map((each) => ({ ...first, environmentId: each }));
  await insert(toBlock(pair), 'two environments');
  for (const each of pair) expect(await countRows('events_exact', each.environmentId)).toBe(1);
});

it('events_exact shows the first received copy of each message in any order, and never merges two messages', async () => {
  let run = 0;
  const copies = fc.array(
    fc.record({
      message: fc.integer({ min: 0, max: 3 }),
      receivedAt: fc.integer({ min: 0, max: 5 }),
      eventName: fc.constantFrom('a', 'b'),
      eventTime: fc.constantFrom(NOW_MS, NOW_MS - 1, NOW_MS - 40 * 86_400_000),
      type: fc.constantFrom('track' as const, 'page' as const),
    }),
    { minLength: 1, maxLength: 12 },
  );
  await fc.assert(
    fc.asyncProperty(copies, fc.integer({ min: 1, max: 12 }), async (list, cut) => {
      const environmentId = `test-fold-${run++}`;
      const identityKey = randomBytes(16);
      const ids = Array.from({ length: 4 }, () => randomBytes(16));
      const records = list.map((copy) => ({
        ...record({ environmentId, identityKey }),
        ...copy,
        receivedAt: NOW_MS + copy.receivedAt,
        messageId: ids[copy.message]!,
      }));
      await insert(toBlock(records.slice(0, cut), 0), `fold|${environmentId}|1`);
      if (cut < records.length) await insert(toBlock(records.slice(cut), cut), `fold|${environmentId}|2`);
      const toKey = ({ message, eventName, eventTime, type }: (typeof list)[number]) =>
        [message, eventName, eventTime, type].join(' ');
      const firsts = [...new Set(list.map(toKey))].map((key) => {
        const copies = list.map((copy, at) => ({ ...copy, at })).filter((copy) => toKey(copy) === key);
        return copies.sort((a, b) => a.receivedAt - b.receivedAt || a.at - b.at)[0]!.at;
      });
      const rows = await readRows<{ at: number }>(
        'SELECT toUInt32(kafka_offset) AS at FROM events_exact WHERE environment_id = {environmentId: String}',
        { environmentId },
      );
      expect(rows.map(({ at }) => at).sort((a, b) => a - b)).toEqual(firsts.sort((a, b) => a - b));
    }),
    { numRuns: runsOf({ quick: 8, all: 20 }) },
  );
});

it('storedOffsets returns the stored offsets in a range, even for names that must be escaped', async () => {
  const escaped = { environmentId: "test-\\'); --", eventName: "a\\' OR 1\n\0 🎮" };
  const rows = [5_000, 5_001].map((offset) => toBlock([record(escaped)], offset));
  await insert(Buffer.concat(rows), 'offsets');
  const range = { partition: 2, start: 4_990, end: 5_001, rows };
  expect(await store.storedOffsets('events', range)).toEqual(new Set([5_000]));
  expect(await store.storedOffsets('events', { ...range, partition: 3 })).toEqual(new Set());
});

it('storedOffsets searches the rows of a large block in parts', async () => {
  const first = record({ environmentId: 'test-large' });
  const rows = Array.from({ length: 12_000 }, (_, row) => toBlock([{ ...first, identityKey: randomBytes(16) }], row));
  const isMissing = (_: Buffer, row: number) => row % 4_000 === 3_999;
  await insert(Buffer.concat(rows.filter((row, index) => !isMissing(row, index))), 'large block');
  const stored = await store.storedOffsets('events', { partition: 2, start: 0, end: rows.length, rows });
  expect(rows.flatMap((_, offset) => (stored.has(offset) ? [] : [offset]))).toEqual([3_999, 7_999, 11_999]);
  await client.command({ query: 'SYSTEM FLUSH LOGS query_log' });
  const found = await client.query({
    query: `SELECT max(memory_usage) < 150e6 AS isSmall, countIf(query_kind = 'Select') AS searches FROM system.query_log
      WHERE type = 'QueryFinish' AND current_database = currentDatabase() AND position(query, 'test-large') > 0`,
    format: 'JSONEachRow',
  });
  expect(await found.json()).toEqual([{ isSmall: 1, searches: '3' }]);
});

it('ClickHouse remembers a token per month, even if the rows are missing', async () => {
  const environmentId = 'test-remembered';
  const rows = [0, 40].map((days, index) =>
    toBlock([record({ environmentId, eventTime: NOW_MS - days * 86_400_000 })], 7_000 + index),
  );
  const range = { partition: 2, start: 7_000, end: 7_002, rows };
  await insert(Buffer.concat(rows), 'remembered');
  // Simulates a crash between recording the token and renaming the part: the token is stored, the rows are missing.
  const text = `ALTER TABLE events DELETE WHERE environment_id = '${environmentId}' AND kafka_offset = 7000`;
  await client.command({ query: 'SYSTEM START MERGES events' });
  await client.command({ query: text, clickhouse_settings: { mutations_sync: '2' } });
  await client.command({ query: 'SYSTEM STOP MERGES events' });
  await insert(Buffer.concat(rows), 'remembered');
  expect(await store.storedOffsets('events', range)).toEqual(new Set([7_001]));
  await insert(rows[0]!, 'remembered');
  expect(await store.storedOffsets('events', range)).toEqual(new Set([7_001]));
  await insert(rows[0]!, 'another');
  expect(await store.storedOffsets('events', range)).toEqual(new Set([7_000, 7_001]));
});

it('storedOffsets ignores rows from a lost log, even if their offsets and times are the same', async () => {
  const environmentId = 'test-replaced-within';
  const receivedAtTime = (receivedAt: number) => record({ environmentId, receivedAt });
  const kept = receivedAtTime(NOW_MS);
  await insert(toBlock([kept, ...[1, 2, 3].map((ms) => receivedAtTime(NOW_MS + ms))], 9_100), 'lost log within');
  // The new log retained the first record. The others arrived late; one has the same receipt time as a lost record.
  const later = [9, 1, 3].map((ms) => receivedAtTime(NOW_MS + ms));
  const rows = [kept, ...later].map((each, index) => toBlock([each], 9_100 + index));
  const range = { partition: 2, start: 9_100, end: 9_104, rows };
  expect(await store.storedOffsets('events', range)).toEqual(new Set([9_100]));
  await insert(Buffer.concat(rows.slice(1)), 'new log');
  expect(await store.storedOffsets('events', range)).toEqual(new Set([9_100, 9_101, 9_102, 9_103]));
});

it('each StoreFault indicates whether a retry can succeed', async () => {
  const block = { table: 'events', rows: Buffer.from([1, 2, 3]), token: 'broken', signal } as const;
  await expect(store.insert(block)).rejects.toMatchObject({ name: 'StoreFault', kind: 'permanent' });
  for (const change of [{ password: 'wrong' }, { url: 'http://127.0.0.1:9' }]) {
    const failing = openEventStore({ ...target, ...change });
    const code = 'password' in change ? 'AUTHENTICATION_FAILED' : expect.any(String);
    await expect(failing.insert(block)).rejects.toMatchObject({ name: 'StoreFault', kind: 'transient', code });
    expect(await failing.ready()).toBe(false);
    await failing.close();
  }
  expect(await store.ready()).toBe(true);
});

it('an insert creates no bloom filters; a merge creates them', async () => {
  const own = await openOwnDatabase();
  const ownStore = openEventStore(own.target);
  const read = async (sql: string) => (await own.query(`${sql} FORMAT TSV`)).split('\n').filter((line) => line !== '');
  const tables = [...Object.keys(EVENT_TABLE_COLUMNS), 'identities'].map((table) => `'${table}'`);
  const filters = (condition: string) =>
    read(`SELECT DISTINCT name FROM system.data_skipping_indices WHERE database = currentDatabase() AND type = 'bloom_filter'
      AND table IN (${tables}) AND ${condition} ORDER BY name`);
  try {
    const rows = toBlock([record({ environmentId: 'filters' })]);
    await ownStore.insert({ table: 'events', rows, token: 'filters', signal });
    expect(await filters('data_compressed_bytes > 0')).toEqual([]);
    await own.query('OPTIMIZE TABLE events FINAL');
    expect(await filters('data_compressed_bytes > 0')).toEqual(['alias_keys', 'carried_keys', 'message_ids']);
    expect(await filters('true')).toEqual(INSERT_SETTINGS.exclude_materialize_skip_indexes_on_insert.split(', '));
  } finally {
    await ownStore.close();
    await own.close();
  }
});
