import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { type DatabaseTarget, runStatement, testStores, toDatabaseName, until } from '@playline/testkit';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { applySql, type SqlFolders, toReplicated } from './apply.ts';
import { readCatalogue } from './test/catalogue.ts';

const CURRENT: SqlFolders = {
  schema: new URL('./schema/', import.meta.url),
  migrations: new URL('./migrations/', import.meta.url),
};
const ONE = "CREATE TABLE IF NOT EXISTS one (a UInt8 COMMENT 'a') ENGINE = MergeTree ORDER BY a";
const TWO = ONE.replace('one', 'two');

let target: DatabaseTarget;
let folder: string;
/** The catalogue of a database created by one uninterrupted start, and the applied files. */
let fresh: Record<string, string>;
let applied: string[];
beforeAll(async () => {
  [fresh, applied] = await readFresh(CURRENT);
});
beforeEach(() => {
  target = { ...testStores().clickhouse, database: toDatabaseName() };
  folder = mkdtempSync(join(tmpdir(), 'sql-'));
});
afterEach(async () => {
  await runStatement({ ...target, database: 'default' }, `DROP DATABASE IF EXISTS ${target.database} SYNC`);
  rmSync(folder, { recursive: true });
});

function createFolders(files: Record<string, string>): SqlFolders {
  const path = mkdtempSync(join(folder, 'release-'));
  for (const kind of ['schema', 'migrations'])
    cpSync(mkdtempSync(join(folder, 'empty-')), join(path, kind), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return { schema: pathToFileURL(`${path}/schema/`), migrations: pathToFileURL(`${path}/migrations/`) };
}

const apply = (files: Record<string, string>) => applySql({ ...target, folders: createFolders(files) });
const tables = async () =>
  (
    await runStatement(
      target,
      "SELECT name FROM system.tables WHERE database = currentDatabase() AND name != 'applied_sql_files' ORDER BY name",
    )
  ).split('\n');

/** Opens a proxy to ClickHouse whose connections break after the given number of requests. */
async function openFailingProxy(requests: number) {
  let remaining = requests;
  const server = createServer(async (request, response) => {
    remaining -= 1;
    if (remaining < 0) return request.socket.destroy();
    const { host, connection, 'transfer-encoding': chunked, ...headers } = request.headers;
    const body = await buffer(request);
    const upstream = await fetch(`${target.url}${request.url}`, {
      method: 'POST',
      headers: headers as Record<string, string>,
      body,
    });
    response.writeHead(upstream.status);
    return response.end(Buffer.from(await upstream.arrayBuffer()));
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

describe('applying the schema to a new database', () => {
  it('creates all tables and views', () => {
    expect(applied).toEqual(
      readdirSync(CURRENT.schema)
        .sort()
        .map((name) => `schema/${name}`),
    );
    expect(Object.keys(fresh)).toEqual(
      expect.arrayContaining(['events', 'events_exact', 'identity_persons', 'portal_audit']),
    );
  });

  it('is completed by the next run after an interruption, and a third run changes nothing', async () => {
    const proxy = await openFailingProxy(70);
    await expect(applySql({ ...target, url: proxy.url }).finally(proxy.close)).rejects.toThrow(
      /socket hang up|ECONNRESET/,
    );
    expect((await tables()).length).toBeGreaterThanOrEqual(40);
    await applySql(target);
    expect(await applySql(target)).toEqual([]);
    expect(await readCatalogue(target)).toEqual(fresh);
  });

  it('creates the same database when two processes do it concurrently', async () => {
    await Promise.all([applySql(target), applySql(target)]);
    expect(await applySql(target)).toEqual([]);
    expect(await readCatalogue(target)).toEqual(fresh);
  });

  it('is refused if the database has other tables or was partly created from another schema', async () => {
    await runStatement({ ...target, database: 'default' }, `CREATE DATABASE ${target.database}`);
    await runStatement(target, 'CREATE TABLE other (a UInt8) ENGINE = Memory');
    await expect(applySql(target)).rejects.toThrow(/has other tables.*DROP DATABASE/);
    await runStatement(target, 'DROP TABLE other SYNC');
    await expect(apply({ 'schema/01-one.sql': `${ONE};\nSELECT wrong;\n` })).rejects.toThrow();
    await expect(applySql(target)).rejects.toThrow(/was only partly created, from another schema.*DROP DATABASE/);
    expect(await tables()).toEqual(['one']);
  });

  it('records existing migrations as applied and replaces the placeholders', async () => {
    const schema = `${ONE.replace('MergeTree', '{{engine ReplacingMergeTree(a)}}')};
      -- A comment; with a semicolon
      CREATE VIEW IF NOT EXISTS of_one AS SELECT a FROM {{all}}.one COMMENT 'b''b';
      ALTER TABLE of_one {{comments of one}};
CREATE TABLE times (event_time DateTime64(3, 'UTC')) ENGINE = Null;
CREATE MATERIALIZED VIEW IF NOT EXISTS one_of_times TO one AS
SELECT 1 AS a
FROM times
WHERE a = 1
GROUP BY a;
CREATE VIEW derived_one AS
{{query of one_of_times between since and until}};
    `;
    await apply({ 'schema/01-one.sql': schema, 'migrations/0001-wrong.sql': 'SELECT wrong;\n' });
    const { one, of_one, derived_one } = await readCatalogue(target);
    expect(one).toContain('ENGINE = ReplacingMergeTree(a)');
    expect(of_one).toContain("`a` UInt8 COMMENT 'a'");
    expect(of_one).toMatch(/COMMENT 'b\\'b'\nAS SELECT a\nFROM one$/);
    expect(derived_one).toMatch(
      /WHERE \(a = 1\) AND \(event_time >= \{since:.*\}\) AND \(event_time < \{until:.*\}\)\nGROUP BY a$/,
    );
  });
});

it('every table can be a replicated table, whose tokens are retained for a week', async () => {
  const files = readdirSync(CURRENT.schema).map((name) => readFileSync(new URL(name, CURRENT.schema), 'utf8'));
  const statements = files
    .flatMap((text) => text.split(/;\s*$/m))
    .map((each) => each.replaceAll(/^\s*--.*\n/gm, '').trim());
  const tables = statements.filter((statement) => statement.startsWith('CREATE TABLE')).map(toReplicated);
  expect(tables.length).toBeGreaterThan(30);
  await runStatement({ ...target, database: 'default' }, `CREATE DATABASE ${target.database}`);
  for (const statement of tables) {
    expect(statement).not.toMatch(/\{\{|non_replicated/);
    const named = statement.replace('{shard}', '1').replace('{replica}', 'one');
    // ClickHouse accepts the statement, but the tests have no Keeper.
    await expect(runStatement(target, named), statement).rejects.toThrow('NO_ZOOKEEPER');
  }
  const events = tables.find((statement) => statement.includes('EXISTS events\n'));
  expect(events).toContain('replicated_deduplication_window_seconds = 604800');
});

describe('applying the schema to an existing database', () => {
  it('applies missing migrations once and in order, even after an interruption', async () => {
    await apply({ 'schema/01-one.sql': ONE });
    const release = {
      'schema/01-one.sql': `${ONE};\n${TWO};\n`,
      'migrations/0001-two.sql': `${TWO};\nSELECT wrong;\n`,
    };
    await expect(apply(release)).rejects.toThrow(/wrong/);
    release['migrations/0001-two.sql'] = `${TWO};\n`;
    const later = { ...release, 'migrations/0002-none.sql': "ALTER TABLE two COMMENT COLUMN a 'b';\n" };
    expect(await apply(later)).toEqual(['migrations/0001-two.sql', 'migrations/0002-none.sql']);
    expect(await apply(later)).toEqual([]);
    expect(await apply({ 'schema/01-one.sql': ONE })).toEqual([]);
  });

  it('refuses an edited schema file without a migration, but accepts an edited comment or file name', async () => {
    await apply({ 'schema/01-one.sql': ONE });
    expect(await apply({ 'schema/02-first.sql': `-- Why.\n${ONE};\n` })).toEqual([]);
    const edited = { 'schema/01-one.sql': `${ONE}, b` };
    await expect(apply(edited)).rejects.toThrow(
      `schema/01-one.sql: edited without a migration, and database ${target.database} has the earlier schema. Write the change`,
    );
    expect(await apply({ ...edited, 'migrations/0001-b.sql': 'SELECT 1;\n' })).toEqual(['migrations/0001-b.sql']);
    expect(await apply({ ...edited, 'migrations/0001-b.sql': 'SELECT 1;\n' })).toEqual([]);
  });

  it('refuses an edited migration before it applies another migration', async () => {
    await apply({ 'schema/01-one.sql': ONE, 'migrations/0001-one.sql': 'SELECT 1;\n' });
    const release = {
      'schema/01-one.sql': ONE,
      'migrations/0001-one.sql': 'SELECT 2;\n',
      'migrations/0002-two.sql': TWO,
    };
    await expect(apply(release)).rejects.toThrow(/^migrations\/0001-one\.sql: edited after .*Undo the edit/);
    expect(await tables()).toEqual(['one']);
  });

  it('kills an abandoned statement of a migration in its database, but not in another database', async () => {
    // Sleeps four seconds, in blocks of one row, because a block may sleep at most three seconds.
    const statement = 'SELECT count() FROM numbers(4) WHERE sleepEachRow(1) = 0 SETTINGS max_block_size = 1';
    await apply({ 'schema/01-one.sql': ONE });
    const outcomeOf = (query: Promise<unknown>) => query.then(() => 'done', String);
    const outcomes = [target, { ...target, database: 'default' }].map((each) =>
      outcomeOf(runStatement(each, statement)),
    );
    const running = `SELECT count() FROM system.processes WHERE query = '${statement}'`;
    await until('both statements run', async () => (await runStatement(target, running)) === '2');
    await apply({ 'schema/01-one.sql': ONE, 'migrations/0001-slow.sql': `${statement};\n` });
    expect(await Promise.all(outcomes)).toEqual([expect.stringContaining('cancelled'), 'done']);
  });
});

describe('the first release with all migrations', () => {
  /** The first migration after a release: `0000-….sql` contains the complete schema of the first release. */
  const base = readdirSync(CURRENT.migrations).find((name) => name.startsWith('0000-'));
  const none = { 'migrations/9999-none.sql': 'SELECT 1;\n' };

  const findDifferences = (one: Record<string, string>, other: Record<string, string>): string[] =>
    [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => one[name] !== other[name]).sort();
  const readSqlFiles = () =>
    Object.fromEntries(
      (['schema', 'migrations'] as const).flatMap((kind) =>
        readdirSync(CURRENT[kind])
          .filter((name) => name.endsWith('.sql'))
          .map((name) => [`${kind}/${name}`, readFileSync(new URL(name, CURRENT[kind]), 'utf8')]),
      ),
    );

  it.runIf(base !== undefined)('creates the same database as the current schema', async () => {
    const files = readSqlFiles();
    const released = Object.entries(files).filter(([name]) => name.startsWith(`migrations/${base}`));
    await apply({ 'schema/00-first.sql': released[0]![1], ...Object.fromEntries(released) });
    await apply({ ...files, ...none });
    expect(findDifferences(await readCatalogue(target), fresh)).toEqual([]);
  });

  const released = `
    CREATE TABLE IF NOT EXISTS one (a UInt8 COMMENT 'a', INDEX ofA a TYPE bloom_filter(0.01)) ENGINE = MergeTree ORDER BY a
      SETTINGS index_granularity = 512 COMMENT 'One';
    CREATE VIEW IF NOT EXISTS of_one AS SELECT a FROM one COMMENT 'Of one';`;

  it.each([
    ['column', "'a', INDEX", "'a', b String COMMENT 'b', INDEX", 'one'],
    ['filter', '0.01', '0.02', 'one'],
    ['setting', 'index_granularity = 512', 'index_granularity = 256', 'one'],
    ['comment', "'One'", "'Two'", 'one'],
    ['view definition', 'SELECT a', 'SELECT a + 1 AS a', 'of_one'],
    ['object', 'CREATE TABLE', `${TWO};\nCREATE TABLE`, 'two'],
  ])('differs from the schema when a migration omits a change: %s', async (_what, from, to, name) => {
    await apply({ 'schema/01-one.sql': released });
    const [current] = await readFresh(createFolders({ 'schema/01-one.sql': released.replace(from, to) }));
    expect(findDifferences(await readCatalogue(target), current)).toEqual([name]);
  });
});

async function readFresh(folders: SqlFolders): Promise<[Record<string, string>, string[]]> {
  const stores = testStores().clickhouse;
  const database = toDatabaseName();
  try {
    const applied = await applySql({ ...stores, database, folders });
    return [await readCatalogue({ ...stores, database }), applied];
  } finally {
    await runStatement({ ...stores, database: 'default' }, `DROP DATABASE IF EXISTS ${database} SYNC`);
  }
}
