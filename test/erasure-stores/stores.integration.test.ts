import { SWEPT_TABLES, SYSTEM_STORES, TABLES } from '@playline/erasure';
import { type OwnDatabase, openOwnDatabase } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findNameGaps, findTableGaps, type RealColumn } from './gaps.ts';

let database: OwnDatabase;

async function query<T>(sql: string): Promise<T[]> {
  const text = await database.query(`${sql} FORMAT JSONEachRow`);
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
}

beforeAll(async () => {
  database = await openOwnDatabase();
  // ClickHouse creates its log tables on the first flush.
  await database.query('SYSTEM FLUSH LOGS query_log, part_log');
});
afterAll(() => database?.close());

// Excludes views and materialized views with a target table, which store no rows themselves.
const readColumns = () =>
  query<RealColumn>(`SELECT table, name, type, toBool(is_in_sorting_key OR is_in_partition_key) AS inSortingKey
    FROM system.columns WHERE database = currentDatabase()
      AND table NOT IN (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View'
        OR (engine = 'MaterializedView' AND create_table_query LIKE '% TO %'))`);

it('every table and column in the schema is registered', async () => {
  expect(findTableGaps(await readColumns(), TABLES)).toEqual([]);
});

it('findTableGaps reports unregistered tables, materialized views and identity columns', async () => {
  await query('CREATE TABLE visits (owner_key FixedString(16)) ENGINE = MergeTree ORDER BY owner_key');
  await query('CREATE MATERIALIZED VIEW by_user ENGINE = MergeTree ORDER BY user_id AS SELECT user_id FROM events');
  await query('ALTER TABLE consent_log ADD COLUMN parent_key FixedString(16)');
  try {
    const gaps = findTableGaps(await readColumns(), TABLES);
    expect(gaps.map((gap) => gap.split(':')[0]).sort()).toEqual([
      'column consent_log.parent_key is not registered',
      expect.stringMatching(/^table \.inner.* is not registered$/),
      'table by_user is not registered',
      'table visits is not registered',
    ]);
  } finally {
    for (const table of ['by_user', 'visits']) await query(`DROP TABLE ${table} SYNC`);
    await query('ALTER TABLE consent_log DROP COLUMN parent_key');
  }
});

it('no swept table has a projection, which would make ClickHouse refuse deletes or rewrite data', async () => {
  const swept = SWEPT_TABLES.map(({ name }) => `'${name}'`).join();
  const projections = `SELECT table, name FROM system.projections WHERE database = currentDatabase() AND table IN (${swept})`;
  expect(await query(projections)).toEqual([]);
});

it('every ClickHouse system table that contains statements or error messages is registered', async () => {
  const real = await query<{ name: string }>(`SELECT name FROM system.tables WHERE database = 'system' AND (
      engine LIKE '%MergeTree' OR name IN (SELECT table FROM system.columns WHERE database = 'system'
        AND name IN ('query', 'last_error_message', 'latest_fail_reason', 'message')))`);
  const gaps = findNameGaps(
    real.map(({ name }) => name),
    SYSTEM_STORES,
    { what: 'system table', file: 'store.ts' },
  );
  expect(gaps).toEqual([]);
});

it('every ClickHouse log table has the registered TTL', async () => {
  const logs = await query<{ name: string; rule: string }>(
    `SELECT name, extract(create_table_query, 'TTL [^)]+[)]') AS rule FROM system.tables
     WHERE database = 'system' AND engine LIKE '%MergeTree' ORDER BY name`,
  );
  expect(logs).toEqual(
    ['part_log', 'query_log'].map((name) => ({ name, rule: 'TTL event_time + toIntervalHour(72)' })),
  );
});
