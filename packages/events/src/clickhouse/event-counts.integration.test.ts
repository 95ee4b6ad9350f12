import { randomBytes } from 'node:crypto';
import { frameRecord, type MessageRecord, messageRecordCodec } from '@playline/contracts';
import { messageRecordOf, type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRowPlan } from '../row/plan.ts';
import { RowBuffer } from '../row/row-buffer.ts';
import { RowTranscoder } from '../row/transcoder.ts';
import { COUNT_STEPS_S, type EventStore } from '../store.ts';
import { createEventCounts, openEventStore } from './index.ts';

const MINUTE_MS = 60_000;
/** A past hour, so that all its minutes have finished. */
const START_MS = Date.now() - (Date.now() % MINUTE_MS) - 6 * 60 * MINUTE_MS;
const { signal } = new AbortController();
const plan = createRowPlan(messageRecordCodec.schema);

let database: OwnDatabase;
let store: EventStore;
beforeAll(async () => {
  database = await openOwnDatabase();
  store = openEventStore(database.target);
  // Otherwise merges would remove copies before they are counted.
  await database.query('SYSTEM STOP MERGES events');
});
afterAll(async () => {
  await store.close();
  await database.close();
});

function toRows(records: readonly MessageRecord[], firstOffset: number): Buffer[] {
  return records.map((record, index) => {
    const out = new RowBuffer(1024);
    const value = frameRecord(1, messageRecordCodec.encode(record));
    new RowTranscoder().add(out, plan, { value, partition: 3, offset: firstOffset + index });
    return out.toBytes();
  });
}

const read = async (sql: string) =>
  (await database.query(`${sql} FORMAT TSV`)).split('\n').filter((line) => line !== '');
const readCounted = (environment: string, stepS: number, columns: string) =>
  read(`SELECT kind, start_at, ${columns}, sum(messages) FROM event_counts FINAL
    WHERE environment_id = '${environment}' AND step_s = ${stepS} AND kind != 'rejection' GROUP BY ALL HAVING sum(messages) > 0 ORDER BY ALL`);
const readExact = (environment: string, stepS: number) =>
  read(`SELECT arrayJoin([('client', '', library), ('event', event_name, '')]) AS row, toString(toStartOfInterval(received_at, toIntervalSecond(${stepS}))) AS start_at, count()
    FROM events_exact WHERE environment_id = '${environment}' AND NOT test GROUP BY ALL ORDER BY ALL`);
const readAll = async (environment: string, stepS: number) => {
  const lines = await readCounted(environment, stepS, 'name, library');
  return lines
    .map((line) => line.split('\t'))
    .map(([kind, start, name, library, messages]) => `('${kind}','${name}','${library}')\t${start}\t${messages}`)
    .sort();
};

const readDelays = (environment: string, stepS: number) =>
  read(`SELECT start_at, delay_ms, messages FROM event_delays FINAL
    WHERE environment_id = '${environment}' AND step_s = ${stepS} AND messages > 0 ORDER BY ALL`);
const readStoredDelays = (environment: string, stepS: number) =>
  read(`SELECT toString(toStartOfInterval(received_at, toIntervalSecond(${stepS}))) AS start_at, toUInt32(exp2(storage_delay / 4)) AS delay_ms, count()
    FROM events WHERE environment_id = '${environment}' GROUP BY ALL ORDER BY ALL`);

const toOrder = ({ minute, isDelayed }: { minute: number; isDelayed: boolean }) => minute + (isDelayed ? 1.5 : 0);

/** A message, and the minutes at which its copies are received; late copies are hours after the event. */
const arbitraryMessage = fc.record({
  name: fc.constantFrom('level_started', 'purchase', ''),
  owner: fc.integer({ min: 0, max: 2 }),
  test: fc.boolean(),
  library: fc.constantFrom('audience-web', 'audience-unity'),
  eventMinute: fc.integer({ min: -40_000, max: 90 }),
  // Minutes that are more than an hour apart are counted separately.
  copies: fc.array(
    fc.record({
      minute: fc.oneof(
        fc.integer({ min: 0, max: 2 }),
        fc.integer({ min: 0, max: 90 }),
        fc.integer({ min: 200, max: 290 }),
      ),
      isDelayed: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  blocks: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 4, maxLength: 4 }),
});

it('the counts of finished minutes and of longer intervals equal events_exact for any copies, in one block or many, and for blocks that are written twice', async () => {
  const counts = createEventCounts(database.target);
  let offset = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(arbitraryMessage, { minLength: 1, maxLength: 25 }), async (messages) => {
      const environmentId = `test-${randomBytes(4).toString('hex')}`;
      const blocks: MessageRecord[][] = [[], [], [], []];
      for (const { name, owner, test, library, eventMinute, copies, blocks: blockOfCopy } of messages) {
        const record = messageRecordOf(name, {
          environmentId,
          test,
          messageId: randomBytes(16),
          identityKey: Buffer.alloc(16, owner),
          eventTime: START_MS + eventMinute * MINUTE_MS,
          library,
        });
        // Copies are stored in the order in which they are received, or up to a minute later.
        const stored = copies.toSorted((left, right) => toOrder(left) - toOrder(right));
        for (const [index, { minute }] of stored.entries())
          blocks[blockOfCopy.toSorted()[index]!]!.push({
            ...record,
            receivedAt: START_MS + minute * MINUTE_MS + owner,
          });
      }
      for (const [index, block] of blocks.entries()) {
        if (block.length === 0) continue;
        const rows = toRows(block, offset);
        const range = { partition: 3, start: offset, end: offset + rows.length, rows };
        await store.insert({ table: 'events', rows: Buffer.concat(rows), token: `${environmentId}-${index}`, signal });
        // Counts that were computed between two blocks must be corrected.
        await counts.update();
        // Another owner writes the block again with another token, as after a lost token.
        if (index % 2 === 1)
          await store.insert({
            table: 'events',
            rows: Buffer.concat(rows),
            token: `${environmentId}-${index}-again`,
            signal,
          });
        await store.storedOffsets('events', range);
        offset += rows.length;
      }
      await counts.update();
      for (const stepS of COUNT_STEPS_S) {
        expect(await readAll(environmentId, stepS)).toEqual((await readExact(environmentId, stepS)).sort());
        expect(await readDelays(environmentId, stepS)).toEqual(await readStoredDelays(environmentId, stepS));
      }
    }),
    { numRuns: runsOf({ quick: 6, all: 40 }) },
  );
});

it('after a day, a minute of all environments has one row, and is due only if it was due before', async () => {
  await database.query(`INSERT INTO counted_minutes VALUES
    ('2026-01-01 00:00:00', 'a', 2, '2026-01-01 00:00:30', 0), ('2026-01-01 00:00:00', 'b', 3, '2026-01-01 00:00:40', 0),
    ('2026-01-01 00:00:00', '', 0, 0, '2026-01-01 00:02:00'), ('2026-01-01 00:01:00', 'b', 5, '2026-01-01 00:03:00', 0)`);
  await database.query('OPTIMIZE TABLE counted_minutes FINAL');
  expect(
    await read(
      "SELECT minute_at, environment_id, stored, stored_at, counted_at FROM counted_minutes WHERE minute_at < '2026-01-02' ORDER BY ALL",
    ),
  ).toEqual([
    '2026-01-01 00:00:00\t\t5\t2026-01-01 00:00:40.000\t2026-01-01 00:02:00.000',
    '2026-01-01 00:01:00\t\t5\t2026-01-01 00:03:00.000\t1970-01-01 00:00:00.000',
  ]);
});

it('the time from receipt to storage is exact to a fifth, and unknown for imported and generated messages', async () => {
  const environmentId = `test-${randomBytes(4).toString('hex')}`;
  const nowMs = Date.now();
  const record = (agoMs: number, userAgent = '') =>
    messageRecordOf('start', { environmentId, messageId: randomBytes(16), receivedAt: nowMs - agoMs, userAgent });
  const hoursMs = 2 * 60 * MINUTE_MS;
  const records = [record(hoursMs), record(-MINUTE_MS), record(hoursMs, 'playline-demo'), record(73 * 60 * MINUTE_MS)];
  const rows = Buffer.concat(toRows(records, 1_000_000));
  await store.insert({ table: 'events', rows, token: environmentId, signal });
  const delays = await read(
    `SELECT delay_ms, messages FROM derived_event_delays(since = '2000-01-01 00:00:00', until = '2100-01-01 00:00:00')
     WHERE environment_id = '${environmentId}' ORDER BY delay_ms DESC, start_at`,
  );
  const [[delayMs] = [], ...rest] = delays.map((line) => line.split('\t').map(Number));
  expect(delayMs).toBeGreaterThanOrEqual(hoursMs);
  // A block that was stored a minute late is within the next two bounds.
  expect(delayMs).toBeLessThan(1.42 * (hoursMs + MINUTE_MS));
  // A message from a gateway whose clock is ahead has the lowest bound.
  expect(rest).toEqual([
    [2, 1],
    [0, 1],
    [0, 1],
  ]);
});
