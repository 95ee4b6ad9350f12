import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { applySql } from '@playline/infra/clickhouse';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bareEnvironment } from './bare-environment.ts';
import { type DatabaseTarget, runStatement } from './clickhouse-target.ts';
import { type OwnDatabase, openOwnDatabase } from './own-database.ts';
import { tableTemplate, testStores } from './stores.ts';

/** What ClickHouse says of a database, without its name. */
const told = async (target: DatabaseTarget, sql: string): Promise<string[]> =>
  (await runStatement(target, sql)).replaceAll(target.database, 'DATABASE').split('\n');

describe('a database that a test opens', () => {
  let own: OwnDatabase;
  beforeAll(async () => {
    own = await openOwnDatabase();
  });
  afterAll(() => own?.close());
  const expectSame = async (sql: string, atLeast: number) => {
    const made = await told(tableTemplate()!, sql);
    expect(made.length).toBeGreaterThanOrEqual(atLeast);
    expect(await told(own.target, sql)).toEqual(made);
  };

  it('has every table, view and dictionary that the SQL files make, by the same statement', () =>
    expectSame(
      'SELECT name, engine, create_table_query FROM system.tables WHERE database = currentDatabase() ORDER BY name',
      60,
    ));

  it('has every column of them, with the same type, default and comment', () =>
    expectSame(
      'SELECT table, * EXCEPT (database, table, data_compressed_bytes, data_uncompressed_bytes, marks_bytes) FROM system.columns WHERE database = currentDatabase() ORDER BY table, position',
      300,
    ));

  it('has the rows that the SQL files insert', () =>
    expectSame('SELECT account, environment_id, revoked, version FROM analyst_grants ORDER BY ALL', 1));

  it('lacks no SQL file, so that nothing is applied to it again', async () => {
    expect(await applySql({ ...own.target })).toEqual([]);
  });

  it('is also opened by a program that is no test run, from the SQL files', async () => {
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
});
