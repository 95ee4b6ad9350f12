// Creates the schema of a database and applies migrations.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { quoteText, selectCluster, type TlsOptions } from '@playline/stores';
import { type ClickHouseClient, openClickHouseClient } from '@playline/stores/clickhouse';
import {
  allOf,
  type ClusterNode,
  createMigrationFilter,
  createStatementFilter,
  distribute,
  replaceDatabases,
  rowsOf,
} from './cluster.ts';

export type { ClusterNode } from './cluster.ts';

/** A database and an account that may create tables in it. */
export interface SqlTarget {
  url: string;
  user: string;
  password: string;
  database: string;
  /** Options for `https://` URLs. */
  tls?: TlsOptions;
  folders?: SqlFolders;
  /** Absent for a single server. */
  node?: ClusterNode;
  /** True for tables whose rows several replicas have. The macros `shard` and `replica` must be configured. */
  isReplicated?: boolean;
}

/** Folders of SQL files. A statement ends with a semicolon at the end of a line. */
export interface SqlFolders {
  /** Files for a new database, named `NN-name.sql`. */
  readonly schema: URL;
  /** Files for an existing database, named `NNNN-name.sql`. */
  readonly migrations: URL;
}

interface SqlFile {
  readonly name: string;
  /** Statements without comments. */
  readonly statements: readonly string[];
  readonly checksum: string;
}

type Applied = ReadonlyMap<string, string>;

interface Release {
  readonly schema: readonly SqlFile[];
  readonly migrations: readonly SqlFile[];
  /** Checksums of applied files by name, as recorded in the database. */
  readonly applied: Applied;
}

const DEFAULT_FOLDERS: SqlFolders = {
  schema: new URL('./schema/', import.meta.url),
  migrations: new URL('./migrations/', import.meta.url),
};
/** A migration may backfill a table from years of history. Ten million activities took four minutes on two cores. */
const STATEMENT_MAX_S = 24 * 3_600;
/** ClickHouse sends progress in HTTP headers, and Node accepts 16 KiB of headers. */
const PROGRESS_MS = 240_000;
const SCHEMA_NAME = /^\d\d-[a-z0-9-]+\.sql$/;
const MIGRATION_NAME = /^\d{4}-[a-z0-9-]+\.sql$/;
const DATABASE_NAME = /^[a-z][a-z0-9_]{0,63}$/;
/** Recorded before the first statement, with the checksum of the complete schema. */
const FIRST_START = 'schema';

const CREATE_APPLIED_FILES = `CREATE TABLE IF NOT EXISTS applied_sql_files
(
    name String COMMENT 'File in infra/clickhouse, such as schema/02-events.sql; schema once creation has begun',
    checksum String COMMENT 'Hexadecimal SHA-256 of the statements in the file',
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'Time when the file was applied'
)
ENGINE = {{engine ReplacingMergeTree(applied_at)}}
ORDER BY name
COMMENT 'SQL files applied to this database'`;

/**
 * Creates the schema in a new database, or applies missing migrations. Repeated and concurrent calls are safe, because
 * every statement can run twice, and files are recorded after they have run.
 * @returns names of the files that were applied
 * @throws Error before any statement runs, when an applied file was edited or the database has other tables
 */
export async function applySql(target: SqlTarget): Promise<string[]> {
  if (!DATABASE_NAME.test(target.database)) throw new RangeError('database: expected [a-z][a-z0-9_]{0,63}');
  const folders = target.folders ?? DEFAULT_FOLDERS;
  const schema = readFiles('schema', folders.schema, SCHEMA_NAME);
  const migrations = readFiles('migrations', folders.migrations, MIGRATION_NAME);
  await createDatabase(target);
  const client = openClient(target, target.database);
  try {
    // Counted first, because another first start writes its record before its tables.
    const tables = await countTables(client);
    await client.command({ query: replacePlaceholders(CREATE_APPLIED_FILES, target) });
    const applied = await readApplied(client);
    const isNew = ![...applied.keys()].some((name) => name.startsWith('schema/'));
    if (!isNew) return await migrate(client, target, { schema, migrations, applied });
    assertCreatable(target.database, { schema, applied, tables });
    await record(client, [{ name: FIRST_START, checksum: checksumOf(schema) }]);
    await createAll(client, target, schema);
    await record(client, [...schema, ...migrations]);
    return schema.map(({ name }) => name);
  } finally {
    await client.close();
  }
}

async function createAll(client: ClickHouseClient, target: SqlTarget, schema: readonly SqlFile[]): Promise<void> {
  const isOfNode = createStatementFilter(target.node);
  for (const { statements } of schema)
    for (const statement of statements) if (isOfNode(statement)) await create(client, target, statement);
}

/** Removes what depends on the set of nodes, which contains no rows. Until `createForNodes`, every read is an error. */
export async function dropForNodes(target: SqlTarget): Promise<void> {
  const client = openClient(target, target.database);
  try {
    for (const name of await readNamesForNodes(client))
      await client.command({ query: `DROP TABLE IF EXISTS ${name} SYNC` });
    for (const name of [rowsOf(target.database), allOf(target.database)])
      await client.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` });
  } finally {
    await client.close();
  }
}

/** Creates what depends on the set of nodes in a database that has all tables and their first rows. */
export async function createForNodes(target: SqlTarget): Promise<void> {
  await createDatabase(target);
  const client = openClient(target, target.database);
  try {
    const schema = readFiles('schema', (target.folders ?? DEFAULT_FOLDERS).schema, SCHEMA_NAME);
    const isInsert = (statement: string) => statement.startsWith('INSERT ');
    const files = schema.map((file) => ({ ...file, statements: file.statements.filter((each) => !isInsert(each)) }));
    await createAll(client, target, files);
  } finally {
    await client.close();
  }
}

/** Views for readers and tables over nodes. */
async function readNamesForNodes(client: ClickHouseClient): Promise<string[]> {
  const query = `SELECT name FROM system.tables WHERE database = currentDatabase()
    AND (engine = 'Distributed' OR definer = 'views')`;
  const rows = await (await client.query({ query, format: 'JSONEachRow' })).json<{ name: string }>();
  return rows.map(({ name }) => name);
}

/** Applies missing migrations. The last migration is recorded together with the new schema. */
async function migrate(client: ClickHouseClient, target: SqlTarget, release: Release): Promise<string[]> {
  assertUnedited(target.database, release);
  await assertSameNodes(client, target);
  const { schema, migrations, applied } = release;
  const missing = migrations.filter(({ name }) => !applied.has(name));
  const isOfNode = target.node === undefined ? () => true : createMigrationFilter(await readNamesForNodes(client));
  for (const file of missing) {
    for (const statement of file.statements.filter(isOfNode)) {
      await killPreviousAttempt(client, replacePlaceholders(statement, target));
      await run(client, target, statement);
    }
    if (file !== missing.at(-1)) await record(client, [file]);
    else {
      if (target.node !== undefined) {
        // What depends on the set of nodes has the columns of the tables at the time of its creation.
        await dropForNodes(target);
        await createForNodes(target);
      }
      await record(client, [file, ...schema]);
    }
  }
  return missing.map(({ name }) => name);
}

/** @throws Error unless the database is empty or was partly created from this schema */
function assertCreatable(
  database: string,
  { schema, applied, tables }: Pick<Release, 'schema' | 'applied'> & { tables: number },
): void {
  const started = applied.get(FIRST_START);
  if (started === undefined ? tables === 0 : started === checksumOf(schema)) return;
  const found = started === undefined ? 'has other tables' : 'was only partly created, from another schema';
  throw new Error(
    `Database ${database} ${found}. Choose an empty database, or drop this one: DROP DATABASE ${database}`,
  );
}

/** @throws Error if the tables belong to a single server instead of a cluster, or the reverse, or are being divided */
async function assertSameNodes(client: ClickHouseClient, { database, node }: SqlTarget): Promise<void> {
  const copies = await (await client.query({ query: 'EXISTS TABLE events_next', format: 'JSONEachRow' })).json();
  if ((copies as { result: number }[])[0]?.result === 1)
    throw new Error(`The rows of database ${database} are being divided. Complete npm run shards -- reshard first`);
  const [row] = await (await client.query({ query: selectCluster(database), format: 'JSONEachRow' })).json<{
    cluster: string;
  }>();
  const cluster = row?.cluster ?? null;
  if (cluster === (node?.cluster ?? null)) return;
  // An earlier migration was interrupted between `dropForNodes` and `createForNodes`. A single server has views for readers.
  if (cluster === null && (await readNamesForNodes(client)).length === 0) return;
  const found = cluster === null ? 'a single server' : `cluster ${cluster}`;
  throw new Error(
    `Database ${database} has the tables of ${found}. Set CLICKHOUSE_CLUSTER accordingly, or divide the rows: npm run shards -- reshard`,
  );
}

/** @throws Error that names the edited files */
function assertUnedited(database: string, { schema, migrations, applied }: Release): void {
  const edited = migrations.filter(({ name, checksum }) => applied.has(name) && applied.get(name) !== checksum);
  if (edited.length > 0)
    throw new Error(
      `${toNames(edited)}: edited after it was applied to database ${database}. Undo the edit, and write a new migration.`,
    );
  const known = new Set(migrations.map(({ name }) => name));
  const isOfNewerRelease = [...applied.keys()].some((name) => name.startsWith('migrations/') && !known.has(name));
  if (isOfNewerRelease || migrations.some(({ name }) => !applied.has(name))) return;
  // Files are compared by checksum, because a file may be renamed.
  const checksums = new Set(applied.values());
  const changed = schema.filter(({ checksum }) => !checksums.has(checksum));
  if (changed.length > 0)
    throw new Error(
      `${toNames(changed)}: edited without a migration, and database ${database} has the earlier schema. ` +
        'Write the change as a new file in infra/clickhouse/migrations, or drop the database.',
    );
}

const toNames = (files: readonly SqlFile[]) => files.map(({ name }) => name).join(', ');

// Progress keeps the connection active, because proxies may close idle connections.
const PROGRESS = { send_progress_in_http_headers: 1, http_headers_progress_interval_ms: String(PROGRESS_MS) } as const;

export const openClient = (target: SqlTarget, database: string): ClickHouseClient =>
  openClickHouseClient({ ...target, database }, { executionMaxS: STATEMENT_MAX_S, connectionsMax: 1 }, PROGRESS);

async function createDatabase(target: SqlTarget): Promise<void> {
  const client = openClient(target, 'default');
  const { database, node } = target;
  const names = node === undefined ? [database] : [database, rowsOf(database), allOf(database)];
  try {
    for (const name of names) await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${name} ENGINE = Atomic` });
  } finally {
    await client.close();
  }
}

function readFiles(kind: string, folder: URL, pattern: RegExp): SqlFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  for (const name of names)
    if (!pattern.test(name))
      throw new Error(`${kind}/${name}: the name must match ${pattern.source}, because it determines the order`);
  const sources = names
    .sort()
    .map((name) => readFileSync(new URL(name, folder), 'utf8').replaceAll(/^\s*--.*\n/gm, ''));
  return names.map((name, index) => {
    const text = replaceQueries(sources[index]!, sources.join('\n'));
    const statements = text.split(/;\s*$/m).map((statement) => statement.trim());
    const nonEmpty = statements.filter((statement) => statement !== '');
    return { name: `${kind}/${name}`, statements: nonEmpty, checksum: sha256(nonEmpty.join(';\n')) };
  });
}

const RANGE = "event_time >= {since: DateTime64(3, 'UTC')} AND event_time < {until: DateTime64(3, 'UTC')}";

/**
 * Replaces `{{query of X}}` with the query of the view X, and `{{query of X between since and until}}` with the query of
 * the materialized view X for a time range.
 */
function replaceQueries(text: string, schema: string): string {
  return text.replaceAll(/\{\{query of (\w+)( between since and until)?\}\}/g, (_, view: string, range?: string) => {
    const [, query] =
      new RegExp(
        `^CREATE (?:MATERIALIZED )?VIEW IF NOT EXISTS \\S*\\b${view} .*\\bAS\n([^;]+?)(?:\nCOMMENT '.*)?;`,
        'm',
      ).exec(schema) ?? [];
    if (query === undefined) throw new Error(`The schema has no view ${view}.`);
    return range === undefined ? query : query.replace(/^WHERE .*$/m, (conditions) => `${conditions} AND ${RANGE}`);
  });
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const checksumOf = (files: readonly SqlFile[]) => sha256(files.map(({ checksum }) => checksum).join());

/** Replaces `{{engine X}}` with X, and `{{all}}` and `{{rows}}` with databases. */
const replacePlaceholders = (statement: string, { database, node, isReplicated = false }: SqlTarget): string => {
  const replaced = isReplicated ? toReplicated(statement) : statement.replaceAll(/\{\{engine (.+?)\}\}/g, '$1');
  return replaceDatabases(replaced, database, node);
};

/** At least as long as the log is retained. By default, a block that is repeated after an hour would be stored again. */
const TOKENS_RETAINED_S = 7 * 24 * 3_600;

/** Replaces `{{engine X(…)}}` with the replicated engine, and the deduplication window with the window of replicas. */
export function toReplicated(statement: string): string {
  return statement
    .replaceAll(/\{\{engine (\w+)(?:\((.*?)\))?\}\}/g, (_, engine: string, version?: string) => {
      const path = "'/clickhouse/{shard}/{database}/{table}', '{replica}'";
      return `Replicated${engine}(${version === undefined ? path : `${path}, ${version}`})`;
    })
    .replaceAll(
      /\bnon_replicated_deduplication_window = (\d+)/g,
      `replicated_deduplication_window = $1, replicated_deduplication_window_seconds = ${TOKENS_RETAINED_S}`,
    );
}

/** Executes a statement of the schema. In a cluster, also creates the object's counterparts in the other databases. */
async function create(client: ClickHouseClient, target: SqlTarget, statement: string): Promise<void> {
  await run(client, target, statement);
  const { database, node } = target;
  if (node === undefined) return;
  for (const each of await distribute(client, statement, { database, node })) await run(client, target, each);
}

async function run(client: ClickHouseClient, target: SqlTarget, statement: string): Promise<void> {
  const [, view = '', source = ''] = /^ALTER TABLE (\S+) \{\{comments of (\w+)\}\}/.exec(statement) ?? [];
  const comments = view === '' ? '' : await readComments(client, view.split('.').at(-1)!, source);
  const filled = statement.replace(/\{\{comments of \w+\}\}/, () => comments);
  await client.command({ query: replacePlaceholders(filled, target) });
}

/** A view of one shard is in the second of these databases. */
const DATABASES = "currentDatabase(), concat(currentDatabase(), '_rows')";

/** @returns ALTER TABLE clauses that copy column comments by name, because a view does not inherit comments */
async function readComments(client: ClickHouseClient, view: string, source: string): Promise<string> {
  const result = await client.query({
    query: `SELECT name, comment FROM system.columns
      WHERE database IN (${DATABASES}) AND table = {source: String} AND comment != ''
        AND name IN (SELECT name FROM system.columns WHERE database IN (${DATABASES}) AND table = {view: String})
      ORDER BY position LIMIT 1 BY name`,
    query_params: { view, source },
    format: 'JSONEachRow',
  });
  const rows = await result.json<{ name: string; comment: string }>();
  return rows.map(({ name, comment }) => `COMMENT COLUMN ${name} ${quoteText(comment)}`).join(', ');
}

async function countTables(client: ClickHouseClient): Promise<number> {
  const query =
    "SELECT count() AS tables FROM system.tables WHERE database = currentDatabase() AND name != 'applied_sql_files'";
  const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ tables: string }>();
  return Number(row?.tables);
}

async function readApplied(client: ClickHouseClient): Promise<Applied> {
  const query = 'SELECT name, checksum FROM applied_sql_files FINAL';
  const result = await client.query({ query, format: 'JSONEachRow' });
  const rows = await result.json<{ name: string; checksum: string }>();
  return new Map(rows.map(({ name, checksum }) => [name, checksum]));
}

async function record(client: ClickHouseClient, files: readonly Pick<SqlFile, 'name' | 'checksum'>[]): Promise<void> {
  await client.insert({
    table: 'applied_sql_files',
    values: files.map(({ name, checksum }) => ({ name, checksum })),
    format: 'JSONEachRow',
    clickhouse_settings: { async_insert: 0 },
  });
}

/** Kills an earlier run of the statement, which ClickHouse continues after the client has disconnected. */
async function killPreviousAttempt(client: ClickHouseClient, statement: string): Promise<void> {
  const query = `SELECT query_id FROM system.processes
    WHERE query = {statement: String} AND current_database = currentDatabase()`;
  const result = await client.query({ query, query_params: { statement }, format: 'JSONEachRow' });
  for (const { query_id } of await result.json<{ query_id: string }>())
    await client.command({ query: `KILL QUERY WHERE query_id = '${query_id}' SYNC` });
}
