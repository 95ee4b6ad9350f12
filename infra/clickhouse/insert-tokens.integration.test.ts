import { EVENT_AGE_MAX_MS, EVENT_AHEAD_MAX_MS, TOPICS } from '@playline/contracts';
import { BLOCKS_PER_S_MAX, TABLE_PARTITIONS_PER_BLOCK_MAX } from '@playline/runtime';
import { type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const DAY_MS = 24 * 60 * 60 * 1000;
const TOKEN_NEEDED_S = 600;

let database: OwnDatabase;
beforeAll(async () => {
  database = await openOwnDatabase();
}, 120_000);
afterAll(() => database.close());

describe('the deduplication window of a table', () => {
  it('counts tokens across all partitions, and an insert uses one token per partition', async () => {
    const { query } = database;
    await query(`CREATE TABLE remembered (at Date, value UInt32) ENGINE = MergeTree PARTITION BY toStartOfMonth(at) ORDER BY at
      SETTINGS non_replicated_deduplication_window = 4`);
    const months = (...names: string[]) => names.map((month) => `('2026-${month}-01', 1)`).join();
    const insert = (token: string, rows: string) =>
      query(`INSERT INTO remembered SETTINGS insert_deduplication_token = '${token}' VALUES ${rows}`);
    const count = async () => Number(await query('SELECT count() FROM remembered'));
    await insert('a', months('01'));
    await insert('b', months('02', '03', '04'));
    await insert('a', months('01'));
    expect(await count()).toBe(4);
    // The fifth token evicts the first token, although the partitions differ.
    await insert('c', months('05'));
    await insert('a', months('01'));
    expect(await count()).toBe(6);
  });

  it('covers ten minutes of blocks, regardless of the partitions in each block', async () => {
    const rows = await database.query(`SELECT name, partition_key,
        extract(create_table_query, 'non_replicated_deduplication_window = ([0-9]+)')
      FROM system.tables WHERE database = currentDatabase() AND create_table_query LIKE '%deduplication_window = %'
        AND name != 'remembered' AND create_table_query NOT LIKE '%deduplication_window = 0%' ORDER BY name FORMAT TSV`);
    const tables = rows
      .trim()
      .split('\n')
      .map((row) => row.split('\t'));
    expect(tables.map(([name]) => name)).toEqual(expect.arrayContaining(['events', 'identity_links', 'consent_log']));
    const hasOnePartition = (name: string, partitionKey: string) =>
      partitionKey === '' || name === 'identity_overrides';
    const tooFew = tables.filter(([name, partitionKey, window]) => {
      const partitions = hasOnePartition(name!, partitionKey!) ? 1 : TABLE_PARTITIONS_PER_BLOCK_MAX;
      return Number(window) < BLOCKS_PER_S_MAX * TOKEN_NEEDED_S * partitions;
    });
    expect(tooFew).toEqual([]);
  });

  it('covers every block: the event times in a block fall into at most three calendar months', () => {
    const rangeMs = EVENT_AGE_MAX_MS + EVENT_AHEAD_MAX_MS + TOPICS.messages.retentionMs;
    expect(rangeMs).toBeLessThan(59 * DAY_MS);
    const property = fc.property(
      fc.date({ min: new Date('2020-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
      (from) => {
        const until = new Date(from.getTime() + 59 * DAY_MS - 1);
        const months = (until.getUTCFullYear() - from.getUTCFullYear()) * 12 + until.getUTCMonth() - from.getUTCMonth();
        expect(months + 1).toBeLessThanOrEqual(TABLE_PARTITIONS_PER_BLOCK_MAX);
      },
    );
    fc.assert(property, { numRuns: 2_000 });
  });
});

it('a block that is ignored because of its token still passes through the views, so only the log of parts counts each row once', async () => {
  const { query, target } = database;
  const insert = () =>
    query(`INSERT INTO events (environment_id, received_at, event_time, message_id) SETTINGS insert_deduplication_token = 'repeated'
      SELECT 'repeated', now64(3), now64(3), generateUUIDv4() FROM numbers(3)`);
  await insert();
  await insert();
  await query('SYSTEM FLUSH LOGS part_log');
  const numbers = [
    "SELECT count() FROM events WHERE environment_id = 'repeated'",
    "SELECT sum(stored) FROM counted_minutes WHERE environment_id = 'repeated'",
    `SELECT sum(rows) FROM system.part_log WHERE database = '${target.database}' AND table = 'events' AND event_type = 'NewPart' AND error = 0`,
  ];
  expect(await Promise.all(numbers.map(async (sql) => Number(await query(sql))))).toEqual([3, 6, 3]);
});
