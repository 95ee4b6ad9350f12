import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import type { TlsOptions } from '@playline/runtime';

/** A ClickHouse server, a user that may create tables there, and the database to fill. */
export interface SqlTarget {
  url: string;
  user: string;
  password: string;
  database: string;
  /** For `https://`. */
  tls?: TlsOptions;
  /** Folder of `NNNN-name.sql` files with one statement each. Default: the project's own. */
  folder?: URL;
}

/** The text of an applied file has changed in the folder. */
export class EditedFileError extends Error {
  override readonly name = 'EditedFileError';
}

interface SqlFile {
  name: string;
  /** As ClickHouse shows it while it runs: the client sends it without what surrounds it. */
  statement: string;
  /** Of the whole file. */
  checksum: string;
}

const OWN_FOLDER = new URL('./tables/', import.meta.url);
/** Filling a table from years of history takes long: ten million activities took four minutes on two cores. */
const STATEMENT_MAX_MS = 24 * 3_600_000;
/** ClickHouse sends a progress header each time, and Node accepts at most 16 KiB of headers. */
const PROGRESS_MS = 240_000;
const FILE_NAME = /^\d{4}-[a-z0-9-]+\.sql$/;
const SKIPPED_IF = /^-- Skipped if 1: (SELECT .+)$/m;
const DATABASE_NAME = /^[a-z][a-z0-9_]{0,63}$/;

const REGISTER = `CREATE TABLE IF NOT EXISTS applied_sql_files
(
    name String COMMENT 'File in infra/clickhouse/tables',
    checksum String COMMENT 'SHA-256 of its text, hexadecimal',
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was applied'
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name
COMMENT 'Which numbered SQL files this database has'`;

/**
 * Creates the database and applies the numbered SQL files that it lacks, in order. Safe to repeat, also after a crash:
 * a file is recorded only after it ran, so it must be safe to run twice, or have a line `-- Skipped if 1: SELECT …`
 * that shows whether it ran.
 * @returns names of the files applied now
 * @throws EditedFileError before anything is applied, when a file differs from what was applied
 */
export async function applySql(target: SqlTarget): Promise<string[]> {
  if (!DATABASE_NAME.test(target.database)) throw new RangeError('database: expected [a-z][a-z0-9_]{0,63}');
  const files = readFiles(target.folder ?? OWN_FOLDER);
  await createDatabase(target);
  const client = openClient(target, target.database);
  try {
    await client.command({ query: REGISTER });
    const applied = await readApplied(client);
    refuseEdited(files, applied, target.database);
    const missing = files.filter(({ name }) => !applied.has(name));
    for (const file of missing) {
      await endFormer(client, file);
      if (!(await isSkipped(client, file))) await client.command({ query: file.statement });
      await client.insert({
        table: 'applied_sql_files',
        values: [{ name: file.name, checksum: file.checksum }],
        format: 'JSONEachRow',
        clickhouse_settings: { async_insert: 0 },
      });
    }
    return missing.map(({ name }) => name);
  } finally {
    await client.close();
  }
}

function openClient(target: SqlTarget, database?: string): ClickHouseClient {
  const { url, user: username, password, tls } = target;
  const agent = tls === undefined ? {} : { http_agent: new Agent({ ...tls, keepAlive: true }) };
  return createClient({
    ...{ url, username, password, ...agent, ...(database === undefined ? {} : { database }) },
    request_timeout: STATEMENT_MAX_MS,
    // Filling a table may take long, and proxies may close an idle connection.
    clickhouse_settings: { send_progress_in_http_headers: 1, http_headers_progress_interval_ms: String(PROGRESS_MS) },
  });
}

async function createDatabase(target: SqlTarget): Promise<void> {
  const client = openClient(target);
  try {
    await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${target.database} ENGINE = Atomic` });
  } finally {
    await client.close();
  }
}

function readFiles(folder: URL): SqlFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  for (const name of names)
    if (!FILE_NAME.test(name)) throw new Error(`${name}: name it NNNN-what-it-makes.sql, so that its order is plain`);
  return names.sort().map((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    const statement = text.trim().replace(/[\s;]+$/, '');
    return { name, statement, checksum: createHash('sha256').update(text).digest('hex') };
  });
}

async function readApplied(client: ClickHouseClient): Promise<Map<string, string>> {
  const result = await client.query({
    query: 'SELECT name, checksum FROM applied_sql_files FINAL',
    format: 'JSONEachRow',
  });
  const rows = await result.json<{ name: string; checksum: string }>();
  return new Map(rows.map(({ name, checksum }) => [name, checksum]));
}

/**
 * Ends an earlier attempt of the same statement in this database: ClickHouse continues a statement after its client has
 * gone, so the two would overlap.
 */
async function endFormer(client: ClickHouseClient, { statement }: SqlFile): Promise<void> {
  const query = `SELECT query_id FROM system.processes
    WHERE query = {statement: String} AND current_database = currentDatabase()`;
  const result = await client.query({ query, query_params: { statement }, format: 'JSONEachRow' });
  for (const { query_id } of await result.json<{ query_id: string }>())
    await client.command({ query: `KILL QUERY WHERE query_id = '${query_id}' SYNC` });
}

/**
 * A statement that must not run twice has in its first line a query that shows whether it ran. ClickHouse may have
 * ended after the statement and before our record.
 */
async function isSkipped(client: ClickHouseClient, { statement }: SqlFile): Promise<boolean> {
  const question = SKIPPED_IF.exec(statement)?.[1];
  if (question === undefined) return false;
  const result = await client.query({ query: question, format: 'TabSeparated' });
  return (await result.text()).trim() === '1';
}

function refuseEdited(files: SqlFile[], applied: Map<string, string>, database: string): void {
  const edited = files.filter(({ name, checksum }) => applied.has(name) && applied.get(name) !== checksum);
  if (edited.length === 0) return;
  const names = edited.map(({ name }) => name).join(', ');
  throw new EditedFileError(
    `${names}: edited after it was applied to database ${database}. ` +
      'Undo the edit, and write the change as a new file with the next number (ALTER TABLE, CREATE OR REPLACE VIEW).',
  );
}
