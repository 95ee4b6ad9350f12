import { randomBytes } from 'node:crypto';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { testStores, until } from '@playline/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { applySql, EditedFileError } from './apply.ts';

const OWN_FOLDER = new URL('./tables/', import.meta.url);

describe('applySql', () => {
  const { url, user, password } = testStores().clickhouse;
  let client: ClickHouseClient;
  let database: string;

  const rowsOf = async <T>(query: string): Promise<T[]> =>
    (await client.query({ query, format: 'JSONEachRow', query_params: { database } })).json<T>();

  beforeAll(() => {
    client = createClient({ url, username: user, password });
  });
  afterAll(() => client.close());
  beforeEach(() => {
    database = `playline_test_${randomBytes(6).toString('hex')}`;
  });
  afterEach(async () => {
    await client.command({ query: `DROP DATABASE IF EXISTS ${database} SYNC` });
  });

  it('creates every table, records the applied files, and does nothing when repeated', async () => {
    const applied = await applySql({ url, user, password, database });
    expect(applied).toEqual([...applied].sort());
    const tables = await rowsOf<{ name: string }>('SELECT name FROM system.tables WHERE database = {database: String}');
    expect(tables.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['events', 'events_exact', 'events_identified', 'identity_links', 'identity_overrides']),
    );
    expect(await applySql({ url, user, password, database })).toEqual([]);
  });

  /** Each record is a part of its own, which goes at once. A DELETE would rewrite all of them. */
  const loseLastRecord = async () => {
    await client.command({ query: `SYSTEM STOP MERGES ${database}.applied_sql_files` });
    const [last] = await rowsOf<{ part: string }>(
      `SELECT name AS part FROM system.parts WHERE database = {database: String} AND table = 'applied_sql_files' AND active
       ORDER BY max_block_number DESC LIMIT 1`,
    );
    await client.command({ query: `ALTER TABLE ${database}.applied_sql_files DROP PART '${last!.part}'` });
  };

  it('continues where it stopped when it died between a file and its record', async () => {
    const path = await mkdtemp(join(tmpdir(), 'sql-'));
    const folder = pathToFileURL(`${path}/`);
    try {
      for (const name of (await readdir(OWN_FOLDER)).filter((each) => each.endsWith('.sql')).sort()) {
        await copyFile(new URL(name, OWN_FOLDER), join(path, name));
        expect(await applySql({ url, user, password, database, folder })).toEqual([name]);
        await loseLastRecord();
        expect(await applySql({ url, user, password, database, folder })).toEqual([name]);
      }
    } finally {
      await rm(path, { recursive: true });
    }
  });

  it('ends a statement that a client left running in the same database, and none of another', async () => {
    const path = await mkdtemp(join(tmpdir(), 'sql-'));
    // Ten seconds; a block may sleep three at most.
    const statement = 'SELECT count() FROM numbers(10) WHERE sleepEachRow(1) = 0 SETTINGS max_block_size = 1';
    await client.command({ query: `CREATE DATABASE ${database}` });
    const inDatabase = createClient({ url, username: user, password, database });
    const endOf = (asked: Promise<unknown>) => asked.then(() => 'done', String);
    const ends = [endOf(inDatabase.command({ query: statement })), endOf(client.command({ query: statement }))];
    try {
      const running = `SELECT query FROM system.processes WHERE query = '${statement}'`;
      await until('both run', async () => (await rowsOf(running)).length === 2);
      await writeFile(join(path, '0001-slow.sql'), `${statement};\n`);
      const folder = pathToFileURL(`${path}/`);
      expect(await applySql({ url, user, password, database, folder })).toEqual(['0001-slow.sql']);
    } finally {
      expect(await Promise.all(ends)).toEqual([expect.stringContaining('cancelled'), 'done']);
      await inDatabase.close();
      await rm(path, { recursive: true });
    }
  });

  it('refuses an edited file before it applies anything, and says how to mend it', async () => {
    const path = await mkdtemp(join(tmpdir(), 'sql-'));
    try {
      const folder = pathToFileURL(`${path}/`);
      const one = "CREATE TABLE IF NOT EXISTS one (a UInt8 COMMENT 'a') ENGINE = MergeTree ORDER BY a";
      await writeFile(join(path, '0001-one.sql'), one);
      expect(await applySql({ url, user, password, database, folder })).toEqual(['0001-one.sql']);
      await writeFile(join(path, '0001-one.sql'), `${one}, b`);
      await writeFile(join(path, '0002-two.sql'), one.replace('one', 'two'));
      const again = applySql({ url, user, password, database, folder });
      await expect(again).rejects.toThrow(EditedFileError);
      await expect(again).rejects.toThrow(/0001-one\.sql: edited.*Undo the edit.*next number/);
      expect(
        await rowsOf("SELECT name FROM system.tables WHERE database = {database: String} AND name = 'two'"),
      ).toEqual([]);
      await writeFile(join(path, '0001-one.sql'), one);
      expect(await applySql({ url, user, password, database, folder })).toEqual(['0002-two.sql']);
    } finally {
      await rm(path, { recursive: true });
    }
  });
});
