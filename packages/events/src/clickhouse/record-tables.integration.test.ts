import { randomBytes } from 'node:crypto';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import type { ConsentRecord, RejectionRecord } from '@playline/contracts';
import { createTables, testStores } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addConsentRow, addRejectionRow } from '../record-rows.ts';
import { RowBuffer } from '../row/row-buffer.ts';
import { openEventStore } from './index.ts';

const { signal } = new AbortController();
const NOW_MS = Date.now();
const DAY_MS = 86_400_000;

interface Change extends ConsentRecord {
  partition: number;
  offset: number;
  loggedAt: number;
}

function toConsentBlock(changes: readonly Change[]): Buffer {
  const out = new RowBuffer(1024);
  for (const { partition, offset, loggedAt, ...record } of changes)
    addConsentRow(out, record, { partition, offset, timestampMs: loggedAt });
  return out.toBytes();
}

function toRejectionBlock(records: readonly RejectionRecord[], firstOffset = 0): Buffer {
  const out = new RowBuffer(1024);
  for (const [index, record] of records.entries())
    addRejectionRow(out, record, { partition: 1, offset: firstOffset + index, timestampMs: 0 });
  return out.toBytes();
}

const IDENTITIES = [1, 2, 3].map((byte) => Buffer.alloc(16, byte));
const arbitraryChanges = fc.array(
  fc.record({
    identity: fc.integer({ min: 0, max: 2 }),
    status: fc.constantFrom<ConsentRecord['status']>('none', 'anonymous', 'full'),
    // Clocks may go backwards. Within a partition, only the offset determines the order.
    clock: fc.integer({ min: 0, max: 50 }),
    partition: fc.constantFrom(5, 5, 5, 2),
  }),
  { minLength: 1, maxLength: 12 },
);

/** @returns the expected rows of `consents_current` for an identity whose changes moved from partition 5 to 2 */
function expectedCurrent(changes: readonly Change[], identityKey: Buffer) {
  const own = changes.filter((one) => one.identityKey === identityKey);
  const last = own.sort((a, b) => b.partition - a.partition || a.offset - b.offset).at(-1);
  return last === undefined ? [] : [{ key: identityKey.toString('hex'), status: last.status, source: last.source }];
}

const { url, user, password } = testStores().clickhouse;
const database = `playline_test_${randomBytes(6).toString('hex')}`;
const target = { url, user, password, database };
const store = openEventStore(target);
let client: ClickHouseClient;

const request = (query: string, params: Record<string, unknown> = {}) =>
  client.query({ query, format: 'JSONEachRow', query_params: params });
const readRows = async <T>(query: string, params?: Record<string, unknown>): Promise<T[]> =>
  (await request(query, params)).json<T>();
const countRows = async (source: string): Promise<number> =>
  (await readRows<{ n: number }>(`SELECT toUInt32(count()) AS n FROM ${source}`))[0]!.n;
let tokens = 0;
const insert = (table: 'consent_log' | 'message_rejections', rows: Buffer) =>
  store.insert({ table, rows, token: `token|${tokens++}`, signal });

const change = (changes: Partial<Change>): Change => ({
  environmentId: 'test-consents',
  identityKey: Buffer.alloc(16, 1),
  status: 'full',
  source: 'banner',
  receivedAt: NOW_MS,
  traceId: 'trace',
  partition: 0,
  offset: 0,
  loggedAt: NOW_MS,
  ...changes,
});
const rejection = (changes: Partial<RejectionRecord> = {}): RejectionRecord => ({
  environmentId: 'test-rejections',
  code: 'INVALID_ENUM',
  field: 'context.library',
  surface: 'web',
  library: 'playline-web 🎮',
  libraryVersion: '1.2.3',
  receivedAt: NOW_MS,
  traceId: 'trace',
  messageIndex: 0,
  ...changes,
});

beforeAll(async () => {
  await createTables(target);
  client = createClient({ url, username: user, password, database });
  for (const table of ['consent_log', 'message_rejections'])
    await client.command({ query: `SYSTEM STOP MERGES ${table}` });
});
afterAll(async () => {
  await client.command({ query: `DROP DATABASE ${database} SYNC` });
  await client.close();
  await store.close();
});

const merge = async (table: string) => {
  for (const query of [`START MERGES ${table}`, `STOP MERGES ${table}`]) {
    await client.command({ query: `SYSTEM ${query}` });
    if (query.startsWith('START')) await client.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
  }
};

it('consent_log returns every value unchanged', async () => {
  const environmentId = 'test-values';
  await insert('consent_log', toConsentBlock([change({ environmentId, offset: 7, loggedAt: NOW_MS + 5 })]));
  const query =
    'SELECT lower(hex(identity_key)) AS key, status, source, toString(toUnixTimestamp64Milli(received_at)) AS received, ' +
    'toString(toUnixTimestamp64Milli(logged_at)) AS logged, trace_id, kafka_partition, toUInt32(kafka_offset) AS offset ' +
    "FROM consent_log WHERE environment_id = 'test-values'";
  expect(await readRows(query)).toEqual([
    {
      key: '01'.repeat(16),
      status: 'full',
      source: 'banner',
      received: String(NOW_MS),
      logged: String(NOW_MS + 5),
      trace_id: 'trace',
      kafka_partition: 0,
      offset: 7,
    },
  ]);
});

it('consents_current shows the last change in log order, before and after a merge', async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(arbitraryChanges, fc.integer({ min: 1, max: 12 }), async (list, cut) => {
      const environmentId = `test-latest-${run++}`;
      const changes = list.map(({ identity, clock, ...generatedChange }, offset) =>
        change({
          ...generatedChange,
          environmentId,
          identityKey: IDENTITIES[identity]!,
          offset,
          source: `change ${offset}`,
          // Adding partitions moved the identities from partition 5 to 2, so the times in partition 2 are later.
          loggedAt: NOW_MS + clock + (generatedChange.partition === 2 ? 1_000 : 0),
        }),
      );
      // The later block is inserted first and the earlier block twice. Neither must change the result.
      for (const block of [changes.slice(cut), changes.slice(0, cut), changes.slice(0, cut)])
        if (block.length > 0) await insert('consent_log', toConsentBlock(block));
      const read = () =>
        readRows(
          'SELECT lower(hex(identity_key)) AS key, status, source FROM consents_current ' +
            'WHERE environment_id = {environmentId: String} ORDER BY key',
          { environmentId },
        );
      const expected = IDENTITIES.flatMap((identityKey) => expectedCurrent(changes, identityKey));
      expect(await read()).toEqual(expected);
      if (run % 5 === 0) await merge('consent_log');
      expect(await read()).toEqual(expected);
    }),
    { numRuns: runsOf({ quick: 10, all: 20 }) },
  );
});

it('consent_log retains every change, and merges a block that is written twice', async () => {
  const environmentId = 'test-history';
  const where = `WHERE environment_id = '${environmentId}'`;
  const changes = Array.from({ length: 6 }, (_, offset) => change({ environmentId, offset, status: 'none' }));
  // With two different tokens, the insert behaves as if ClickHouse had forgotten the first token.
  for (let time = 0; time < 2; time++) await insert('consent_log', toConsentBlock(changes));
  expect(await countRows(`consent_log ${where}`)).toBe(12);
  await merge('consent_log');
  expect(await countRows(`consent_log ${where}`)).toBe(6);
});

it("finding one identity's consent among thousands reads only a few granules", async () => {
  const environmentId = 'test-many';
  const keys = Array.from({ length: 10_000 }, () => randomBytes(16));
  const changes = keys.flatMap((identityKey, index) =>
    [0, 1].map((time) => change({ environmentId, identityKey, offset: 2 * index + time, source: `${index}` })),
  );
  await insert('consent_log', toConsentBlock(changes));
  const result = await request(
    'SELECT status, source FROM consents_current ' +
      'WHERE environment_id = {environmentId: String} AND identity_key = unhex({key: String})',
    { environmentId, key: keys[77]!.toString('hex') },
  );
  expect(await result.json()).toEqual([{ status: 'full', source: '77' }]);
  const { read_rows: readRows } = JSON.parse(String(result.response_headers['x-clickhouse-summary']));
  // About two granules in each of the few parts of this test database.
  expect(Number(readRows)).toBeGreaterThan(0);
  expect(Number(readRows)).toBeLessThan(10_000);
});

it('storedOffsets returns the stored offsets of consents and rejections', async () => {
  const consents = [5, 7].map((offset) => toConsentBlock([change({ partition: 9, offset })]));
  await insert('consent_log', Buffer.concat(consents));
  const rejections = [toRejectionBlock([rejection()], 6_000)];
  await insert('message_rejections', rejections[0]!);
  const range = { partition: 9, start: 5, end: 7, rows: consents };
  expect(await store.storedOffsets('consent_log', range)).toEqual(new Set([5]));
  const other = { partition: 1, start: 5_900, end: 6_100, rows: rejections };
  expect(await store.storedOffsets('message_rejections', other)).toEqual(new Set([6_000]));
});

it('a rejection can be found by each of its columns', async () => {
  const one = rejection({ environmentId: 'test-search', traceId: randomBytes(16).toString('hex') });
  const other = rejection({
    environmentId: 'test-search',
    code: 'INVALID_FORMAT',
    field: 'messageId',
    surface: 'unity',
    library: 'playline-unity',
    libraryVersion: '9',
    traceId: randomBytes(16).toString('hex'),
  });
  await insert('message_rejections', toRejectionBlock([one, other]));
  const found = (column: string, value: string) =>
    readRows(
      'SELECT code, field, surface, library, library_version, trace_id, toString(toUnixTimestamp64Milli(received_at)) AS at ' +
        `FROM message_rejections WHERE environment_id = 'test-search' AND ${column} = {value: String}`,
      { value },
    );
  const { environmentId: _, messageIndex: _index, libraryVersion, receivedAt, traceId, ...fields } = one;
  const row = { ...fields, library_version: libraryVersion, trace_id: traceId, at: String(receivedAt) };
  for (const [column, value] of Object.entries({ ...fields, library_version: libraryVersion, trace_id: traceId }))
    expect(await found(column, value)).toEqual([row]);
});

it('a rejection is deleted at most one week after its retention of 90 days', async () => {
  const environmentId = 'test-old';
  const withAge = (days: number, traceId: string) =>
    rejection({ environmentId, receivedAt: NOW_MS - days * DAY_MS, traceId });
  await insert('message_rejections', toRejectionBlock([withAge(98, 'old'), withAge(89, 'young'), withAge(0, 'new')]));
  await merge('message_rejections');
  const query = `SELECT trace_id FROM message_rejections WHERE environment_id = '${environmentId}' ORDER BY trace_id`;
  expect(await readRows(query)).toEqual([{ trace_id: 'new' }, { trace_id: 'young' }]);
});
