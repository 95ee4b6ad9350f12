import { randomBytes } from 'node:crypto';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { frameRecord, type MessageRecord, messageRecordCodec } from '@playline/contracts';
import { createTables, testStores } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRowPlan } from '../row/plan.ts';
import { RowBuffer } from '../row/row-buffer.ts';
import { arbitraryRecord } from '../row/test/arbitrary-record.ts';
import { RowTranscoder } from '../row/transcoder.ts';
import { openEventStore } from './index.ts';

const NOW_MS = 1_790_000_000_000;
const DAY_MS = 86_400_000;

const { url, user, password } = testStores().clickhouse;
const database = `playline_test_${randomBytes(6).toString('hex')}`;
const target = { url, user, password, database };
const store = openEventStore(target);
const { signal } = new AbortController();
let client: ClickHouseClient;

const readRows = async (query: string) => (await client.query({ query, format: 'JSONCompactEachRow' })).json();
const readDerived = async () => [
  await readRows(
    'SELECT environment_id, lower(hex(identity_key)), day, event_name, test FROM identity_days FINAL ORDER BY ALL',
  ),
  await readRows(
    `SELECT environment_id, lower(hex(identity_key)), test, min(first_seen_at), max(last_seen_at), lower(hex(max(first_touch))),
      lower(hex(max(latest_traits))) FROM identities GROUP BY environment_id, identity_key, test ORDER BY ALL`,
  ),
  await readRows(
    `SELECT environment_id, day, lower(hex(identity_key)), session_id, surface, min(first_at), max(last_at), max(lead_ms),
       lower(hex(max(entry))), arraySort(groupUniqArrayArray(messages)) FROM session_days
     GROUP BY environment_id, day, identity_key, session_id, surface ORDER BY ALL`,
  ),
];
const records: MessageRecord[] = fc.sample(arbitraryRecord, { numRuns: 30, seed: 4 }).map((record, index) => ({
  ...record,
  environmentId: `test-${index % 2}`,
  identityKey: Buffer.alloc(16, (index % 5) + 1),
  messageId: randomBytes(16),
  type: index % 7 === 0 ? 'alias' : 'track',
  eventTime: NOW_MS - (index % 3) * DAY_MS,
  receivedAt: NOW_MS,
}));
const plan = createRowPlan(messageRecordCodec.schema);
const rows = records.map((record, offset) => {
  const out = new RowBuffer(1024);
  const value = frameRecord(1, messageRecordCodec.encode(record));
  new RowTranscoder().add(out, plan, { value, partition: 3, offset });
  return out.toBytes();
});
const query = { partition: 3, start: 0, end: rows.length, rows };

beforeAll(async () => {
  await createTables(target);
  client = createClient({ url, username: user, password, database });
});
afterAll(async () => {
  await client.command({ query: `DROP DATABASE ${database} SYNC` });
  await client.close();
  await store.close();
});

it('the derived tables reflect each insert, are completed after an interrupted insert, and ignore copies', async () => {
  await store.insert({ table: 'events', rows: Buffer.concat(rows), token: 'derived|1', signal });
  const complete = await readDerived();
  expect(complete.map((found) => found.length > 5)).toEqual([true, true, true]);
  expect(await store.storedOffsets('events', query)).toHaveProperty('size', rows.length);
  expect(await readDerived()).toEqual(complete);
  // Simulates a crash after the rows are stored and before the materialized views are filled.
  for (const table of ['identity_days', 'identities', 'session_days'])
    await client.command({ query: `TRUNCATE TABLE ${table}` });
  expect(await readDerived()).toEqual([[], [], []]);
  expect(await store.storedOffsets('events', query)).toHaveProperty('size', rows.length);
  expect(await readDerived()).toEqual(complete);
});
