import { randomBytes } from 'node:crypto';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { frameRecord, type MessageRecord, messageRecordCodec } from '@playline/contracts';
import { createTables, testStores } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EVENT_FIELDS } from '../columns.ts';
import { createRowPlan } from '../row/plan.ts';
import { RowBuffer } from '../row/row-buffer.ts';
import { arbitraryRecord } from '../row/test/arbitrary-record.ts';
import { RowTranscoder } from '../row/transcoder.ts';
import { openEventStore } from './index.ts';

const { signal } = new AbortController();
const plan = createRowPlan(messageRecordCodec.schema);
const NOW_MS = 1_790_000_000_000;

function blockOf(records: readonly MessageRecord[], firstOffset = 0): Buffer {
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

const rowsOf = async <T>(query: string, params: Record<string, unknown> = {}): Promise<T[]> =>
  (await client.query({ query, format: 'JSONEachRow', query_params: params })).json<T>();
const countOf = async (table: string, environment: string): Promise<number> => {
  const where = 'WHERE environment_id = {environment: String}';
  const query = `SELECT toUInt32(count()) AS n FROM ${table} ${where}`;
  return (await rowsOf<{ n: number }>(query, { environment }))[0]!.n;
};
const insert = (rows: Buffer, token: string) => store.insert({ table: 'events', rows, token, signal });
/** A record in an environment of its own. Its time is near now, so that the table gets few partitions. */
const record = (over: Partial<MessageRecord> & { environmentId: string }): MessageRecord => ({
  ...fc.sample(arbitraryRecord, { numRuns: 1, seed: 1 })[0]!,
  eventTime: NOW_MS,
  receivedAt: NOW_MS,
  messageId: randomBytes(16),
  ...over,
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

it('the table of events returns every value of every record unchanged', async () => {
  const select = EVENT_FIELDS.map(({ name, column, kind }) => {
    if (kind === 'uuid') return `replaceAll(toString(${column}), '-', '') AS ${name}`;
    if (kind === 'key') return `lower(hex(${column})) AS ${name}`;
    if (kind === 'time') return `toUnixTimestamp64Milli(${column}) AS ${name}`;
    // Compared as bits: JSON has no infinities and no negative zero.
    if (kind === 'nullableDouble') return `toString(reinterpretAsUInt64(${column})) AS ${name}`;
    return `${column} AS ${name}`;
  });
  const where = 'kafka_partition = 2 AND kafka_offset >= {start: UInt64} ORDER BY kafka_offset';
  const query = `SELECT ${select.join(', ')} FROM events WHERE ${where}`;
  const bits = (value: number) => String(new BigUint64Array(new Float64Array([value]).buffer)[0]);
  const shown = (value: unknown) => (Buffer.isBuffer(value) ? value.toString('hex') : value);
  let start = 1_000_000;
  // At most two months: ClickHouse refuses an insert into too many partitions.
  const near = fc.integer({ min: NOW_MS - 86_400_000, max: NOW_MS });
  const records = fc.array(fc.tuple(arbitraryRecord, near), { minLength: 1, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(records, async (generated) => {
      start += 1_000;
      const given = generated.map(([each, eventTime]) => ({ ...each, eventTime }));
      await insert(blockOf(given, start), `values|${start}`);
      const clickhouse_settings = { output_format_json_quote_64bit_integers: 0 as const };
      const found = await client.query({ query, format: 'JSONEachRow', query_params: { start }, clickhouse_settings });
      const rows = await found.json<Record<string, unknown>>();
      expect(rows).toEqual(
        given.map((each) => ({
          ...Object.fromEntries(Object.entries(each).map(([name, value]) => [name, shown(value)])),
          screenDensity: each.screenDensity === null ? null : bits(each.screenDensity),
        })),
      );
    }),
    { numRuns: runsOf({ quick: 8, all: 25 }) },
  );
});

it('a block is stored once, however often it is sent under its token, also when it touches two months', async () => {
  const environmentId = 'test-token';
  const rows = blockOf(Array.from({ length: 50 }, () => record({ environmentId })));
  for (let time = 0; time < 3; time++) await insert(rows, 'topic|2|0|49|events|1');
  expect(await countOf('events', environmentId)).toBe(50);
  // The same bytes under another token are stored again.
  await insert(rows, 'topic|2|0|49|events|2');
  expect(await countOf('events', environmentId)).toBe(100);
  const months = { environmentId: 'test-months' };
  const block = blockOf([0, 40].map((days) => record({ ...months, eventTime: NOW_MS - days * 86_400_000 })));
  for (let time = 0; time < 2; time++) await insert(block, 'months');
  expect(await countOf('events', months.environmentId)).toBe(2);
});

it('events_exact shows a resent message once, as first received, and a message that only shares its id as another', async () => {
  const environmentId = 'test-resent';
  const first = record({ environmentId, eventName: 'first', type: 'track' });
  const same = { ...first, properties: '{"changed":true}', receivedAt: NOW_MS + 1000 };
  // Each has the id of the first, but differs in its name, its time on the same day, its type or its owner.
  const others = [
    { ...first, eventName: 'second' },
    { ...first, eventTime: first.eventTime - 1 },
    { ...first, type: 'page' as const },
    { ...first, identityKey: randomBytes(16) },
  ];
  await insert(blockOf(others, 30), 'resent|3');
  await insert(blockOf([same], 20), 'resent|2');
  await insert(blockOf([first], 10), 'resent|1');
  expect(await countOf('events', environmentId)).toBe(6);
  const read = () =>
    rowsOf(
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
  // A merge keeps the copy that FINAL showed before.
  await client.command({ query: 'SYSTEM START MERGES events' });
  await client.command({ query: 'OPTIMIZE TABLE events FINAL' });
  await client.command({ query: 'SYSTEM STOP MERGES events' });
  expect(await countOf('events', environmentId)).toBe(5);
  expect(await read()).toEqual(expected);
});

it('the table of events keeps every copy within a block, and events_exact shows one', async () => {
  const environmentId = 'test-within-block';
  const first = record({ environmentId, eventTime: NOW_MS - 400 * 86_400_000 });
  const copies = [2, 0, 1].map((later) => ({ ...first, receivedAt: NOW_MS + later }));
  await insert(blockOf([...copies, { ...first, messageId: randomBytes(16) }]), 'within');
  expect(await countOf('events', environmentId)).toBe(4);
  const query = `SELECT toUnixTimestamp64Milli(received_at) - {now: Int64} AS later FROM events_exact
    WHERE environment_id = 'test-within-block' ORDER BY kafka_offset`;
  expect(await rowsOf(query, { now: NOW_MS })).toEqual([{ later: '0' }, { later: '0' }]);
  // The same message id of two environments is two messages.
  const pair = ['test-left', 'test-right'].map((each) => ({ ...first, environmentId: each }));
  await insert(blockOf(pair), 'two environments');
  for (const each of pair) expect(await countOf('events_exact', each.environmentId)).toBe(1);
});

it('copies of each message in any order fold into the one received first, and two messages never fold', async () => {
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
      await insert(blockOf(records.slice(0, cut), 0), `fold|${environmentId}|1`);
      if (cut < records.length) await insert(blockOf(records.slice(cut), cut), `fold|${environmentId}|2`);
      const nameOf = ({ message, eventName, eventTime, type }: (typeof list)[number]) =>
        [message, eventName, eventTime, type].join(' ');
      const firsts = [...new Set(list.map(nameOf))].map((name) => {
        const copies = list.map((copy, at) => ({ ...copy, at })).filter((copy) => nameOf(copy) === name);
        return copies.sort((a, b) => a.receivedAt - b.receivedAt || a.at - b.at)[0]!.at;
      });
      const rows = await rowsOf<{ at: number }>(
        'SELECT toUInt32(kafka_offset) AS at FROM events_exact WHERE environment_id = {environmentId: String}',
        { environmentId },
      );
      expect(rows.map(({ at }) => at).sort((a, b) => a - b)).toEqual(firsts.sort((a, b) => a - b));
    }),
    { numRuns: runsOf({ quick: 8, all: 20 }) },
  );
});

it('the store returns which offsets of a range are stored, also with names that must be escaped', async () => {
  const escaped = { environmentId: "test-\\'); --", eventName: "a\\' OR 1\n\0 🎮" };
  const rows = [5_000, 5_001].map((offset) => blockOf([record(escaped)], offset));
  await insert(Buffer.concat(rows), 'offsets');
  const range = { partition: 2, start: 4_990, end: 5_001, rows };
  expect(await store.storedOffsets('events', range)).toEqual(new Set([5_000]));
  expect(await store.storedOffsets('events', { ...range, partition: 3 })).toEqual(new Set());
});

it('a token is remembered by month, also without its rows', async () => {
  const environmentId = 'test-remembered';
  const rows = [0, 40].map((days, index) =>
    blockOf([record({ environmentId, eventTime: NOW_MS - days * 86_400_000 })], 7_000 + index),
  );
  const range = { partition: 2, start: 7_000, end: 7_002, rows };
  await insert(Buffer.concat(rows), 'remembered');
  // As after a crash between recording the token and renaming the part: the token is known, the rows are missing.
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

it('rows of a lost log do not count as rows of the new log, also at the same offsets and times', async () => {
  const environmentId = 'test-replaced-within';
  const at = (receivedAt: number) => record({ environmentId, receivedAt });
  const kept = at(NOW_MS);
  await insert(blockOf([kept, at(NOW_MS + 1), at(NOW_MS + 2), at(NOW_MS + 3)], 9_100), 'lost log within');
  // The new log kept the first. A gateway sent the others late; one has the same time of receipt as a lost one.
  const now = [kept, at(NOW_MS + 9), at(NOW_MS + 1), at(NOW_MS + 3)].map((each, i) => blockOf([each], 9_100 + i));
  const range = { partition: 2, start: 9_100, end: 9_104, rows: now };
  expect(await store.storedOffsets('events', range)).toEqual(new Set([9_100]));
  await insert(Buffer.concat(now.slice(1)), 'new log');
  expect(await store.storedOffsets('events', range)).toEqual(new Set([9_100, 9_101, 9_102, 9_103]));
});

it('each fault of the store states whether a retry helps', async () => {
  const block = { table: 'events', rows: Buffer.from([1, 2, 3]), token: 'broken', signal } as const;
  await expect(store.insert(block)).rejects.toMatchObject({ name: 'StoreFault', kind: 'final' });
  for (const wrong of [{ password: 'wrong' }, { url: 'http://127.0.0.1:9' }]) {
    const failing = openEventStore({ ...target, ...wrong });
    const code = 'password' in wrong ? 'AUTHENTICATION_FAILED' : expect.any(String);
    await expect(failing.insert(block)).rejects.toMatchObject({ name: 'StoreFault', kind: 'passing', code });
    expect(await failing.ready()).toBe(false);
    await failing.close();
  }
  expect(await store.ready()).toBe(true);
});
