import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { applySql } from '@playline/infra/clickhouse';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bareEnvironment } from './bare-environment.ts';
import { type DatabaseTarget, runStatement } from './clickhouse-target.ts';
import { type OwnDatabase, openOwnDatabase } from './own-database.ts';
import { tableTemplate, testStores } from './stores.ts';

/** Returns the result lines of a query, with the database name replaced. */
const read = async (target: DatabaseTarget, sql: string): Promise<string[]> =>
  (await runStatement(target, sql)).replaceAll(target.database, 'DATABASE').split('\n');

let own: OwnDatabase;
beforeAll(async () => {
  own = await openOwnDatabase();
});
afterAll(() => own?.close());
const expectEqualResults = async (sql: string, atLeast: number) => {
  const expected = await read(tableTemplate()!, sql);
  expect(expected.length).toBeGreaterThanOrEqual(atLeast);
  expect(await read(own.target, sql)).toEqual(expected);
};

it('a copied database has all tables, views and dictionaries of the SQL files', () =>
  expectEqualResults(
    'SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name',
    60,
  ));

it('a copied database has all columns of the SQL files', () =>
  expectEqualResults(
    'SELECT table, * EXCEPT (database, table, data_compressed_bytes, data_uncompressed_bytes, marks_bytes) FROM system.columns WHERE database = currentDatabase() ORDER BY table, position',
    300,
  ));

it('a copied database has all rows that the SQL files insert', () =>
  expectEqualResults('SELECT account, environment_id, revoked, version FROM analyst_grants ORDER BY ALL', 1));

it('a copied database has all migrations applied', async () => {
  expect(await applySql({ ...own.target })).toEqual([]);
});

it('outside a test run, a program creates the same tables from the SQL files', async () => {
  const program = `
    import { openOwnDatabase } from './own-database.ts';
    const own = await openOwnDatabase(JSON.parse(process.env.STORES));
    console.log(await own.query('SELECT count() FROM system.tables WHERE database = currentDatabase()'));
    await own.close();
  `;
  const cwd = fileURLToPath(new URL('.', import.meta.url));
  const env = { ...bareEnvironment(), STORES: JSON.stringify(testStores()) };
  const { stdout } = await promisify(execFile)(process.execPath, ['--eval', program], { cwd, env });
  const count = 'SELECT count() FROM system.tables WHERE database = currentDatabase()';
  expect(stdout.trim()).toBe(await own.query(count));
});
