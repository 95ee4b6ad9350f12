/** Copies tables to files and back, one file per table partition. */
import { TABLE_DISTRIBUTIONS } from '@playline/contracts';
import {
  type ClickHouseAccount,
  createQueryRows,
  onEachNode,
  overAllNodes,
  quoteText,
  readRows,
} from '@playline/stores';
import { createSqlClient, type SqlClient } from '../columns/tables.ts';
import type { Backup, Content, NewBackup } from './backup-store.ts';
import type { BackedUpFile, BackedUpTable } from './manifest.ts';
import { dumpRows, loadRows, RESTORE_QUERY_PREFIX } from './native-files.ts';

/** Filled again from the copied tables: by materialized views while rows are inserted, and by the event writer. */
const DERIVED = [
  'identity_days',
  'identities',
  'session_days',
  'environment_settings',
  'counted_minutes',
  'counted_days',
];
const COUNTED_AGAIN = ['event_counts', 'event_days', 'event_delays', 'player_counts'];
/** Created by each eraser for its batch. */
const TEMPORARY = ['erasure_targets', 'erasure_found'];
/** Belongs to the database, not to its data. */
const KEPT = 'applied_sql_files';

const NOT_COPIED: readonly string[] = [...DERIVED, ...COUNTED_AGAIN, ...TEMPORARY, KEPT];

/**
 * Copied last, in this order, which is the order in which an eraser writes them. Rows that an erasure deleted before
 * they were copied are then always accompanied by the progress, or by the fences and the receipt, of that erasure.
 */
export const ERASURE_TABLES: readonly string[] = [
  'erasure_progress',
  'erasure_requests',
  'erasure_fences',
  'erasure_receipts',
];

/** Reads the names of all tables with rows, without views and dictionaries. */
async function readTableNames(client: SqlClient): Promise<string[]> {
  const rows = await client.read(`SELECT name FROM system.tables
    WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name`);
  return rows.map(([name]) => String(name));
}

async function readColumnNames(client: SqlClient, table: string): Promise<string[]> {
  const rows = await client.read(`SELECT name FROM system.columns
    WHERE database = currentDatabase() AND table = ${quoteText(table)} AND default_kind IN ('', 'DEFAULT') ORDER BY position`);
  return rows.map(([name]) => String(name));
}

/** Reads the partitions of a table, with a value that changes with their parts. */
async function readPartitions(client: SqlClient, table: string): Promise<{ partition: string; parts: string }[]> {
  const rows = await client.read(`SELECT partition_id, lower(hex(groupBitXor(sipHash64(name, hash_of_all_files))))
    FROM system.parts WHERE database = currentDatabase() AND table = ${quoteText(table)} AND active AND rows > 0
    GROUP BY partition_id ORDER BY partition_id`);
  return rows.map(([partition, parts]) => ({ partition: String(partition), parts: String(parts) }));
}

const isSharded = (table: string): boolean => typeof TABLE_DISTRIBUTIONS[table] === 'object';

/** The nodes from which a table is copied: all shards, or the home, which has all other rows. */
const sourcesOf = (account: ClickHouseAccount, table: string): ClickHouseAccount[] =>
  isSharded(table) ? onEachNode(account) : [account];

/** Where the rows of a table are inserted. ClickHouse divides the rows of a sharded table among the present shards. */
function targetsOf(account: ClickHouseAccount, table: string): ClickHouseAccount[] {
  if (isSharded(table)) return [overAllNodes(account)];
  return TABLE_DISTRIBUTIONS[table] === 'everywhere' ? onEachNode(account) : [account];
}

const toNames = (columns: readonly string[]): string => columns.map((name) => `\`${name}\``).join(', ');

export interface CopyOptions {
  readonly account: ClickHouseAccount;
  readonly client: SqlClient;
  readonly backup: NewBackup;
  /** The backup whose files are shared if their partitions have not changed since. */
  readonly previous: Backup | null;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

export async function copyTables(options: CopyOptions): Promise<BackedUpTable[]> {
  const names = (await readTableNames(options.client)).filter((name) => !NOT_COPIED.includes(name));
  const rest = names.filter((name) => !ERASURE_TABLES.includes(name));
  const tables: BackedUpTable[] = [];
  for (const name of [...rest, ...ERASURE_TABLES]) tables.push(await copyTable(options, name));
  return tables;
}

async function copyTable(options: CopyOptions, name: string): Promise<BackedUpTable> {
  const { backup } = options;
  const columns = await readColumnNames(options.client, name);
  const files: BackedUpFile[] = [];
  const previous = options.previous?.manifest.tables.find((table) => table.name === name);
  const isSame = previous?.columns.join() === columns.join();
  for (const node of sourcesOf(options.account, name))
    for (const { partition, parts } of await readPartitions(createSqlClient(node), name)) {
      const known = isSame
        ? previous?.files.find((each) => each.partition === partition && each.parts === parts)
        : undefined;
      if (known !== undefined) {
        files.push({ ...known, file: await backup.share(options.previous!, known.file) });
        continue;
      }
      options.onProgress(`${name}: copying partition ${partition}`);
      const query = `SELECT ${toNames(columns)} FROM ${name} WHERE _partition_id = ${quoteText(partition)}`;
      // Nodes have different parts of the same partition.
      const file = backup.toFile(`${name}.${partition}.${parts}.native`);
      const write = (content: Content) => backup.write(file, content);
      const sum = await dumpRows(node, { query, write, signal: options.signal });
      files.push({ file, partition, parts, ...sum });
    }
  return { name, columns, files };
}

/** Two cores are enough: ClickHouse uses more threads for merges. */
const LOADS_MAX = 2;

export interface LoadOptions {
  readonly account: ClickHouseAccount;
  readonly tables: readonly { readonly table: BackedUpTable; readonly backup: Backup }[];
  /** Identifies this run in the names of its queries. */
  readonly runId: string;
  /** Called before each file. Rejects if the restore must not continue. */
  readonly assertCurrent: () => Promise<void>;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Replaces the rows of all tables. Inserts of an earlier restore, which ClickHouse may still be running, are stopped. */
export async function loadTables(options: LoadOptions): Promise<void> {
  const { account, tables } = options;
  const clients = onEachNode(account).map(createSqlClient);
  // The home first, because its inserts start those on other nodes.
  for (const client of clients)
    await client.run(`KILL QUERY WHERE initial_query_id LIKE '${RESTORE_QUERY_PREFIX}%' SYNC`);
  for (const client of clients)
    for (const name of await readTableNames(client))
      if (name !== KEPT) await client.run(`TRUNCATE TABLE ${name} SETTINGS max_table_size_to_drop = 0`);
  const files = tables.flatMap(({ table, backup }) => table.files.map((file) => ({ table, backup, file })));
  // The largest files first, so that the loads end at the same time.
  const queue = files.toSorted((a, b) => b.file.bytes - a.file.bytes);
  let loaded = 0;
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      await options.assertCurrent();
      await loadFile(options, next);
      options.onProgress(`${++loaded} of ${files.length} files loaded: ${next.file.file}`);
    }
  };
  await Promise.all(Array.from({ length: LOADS_MAX }, work));
}

async function loadFile(
  { account, runId, signal }: LoadOptions,
  { table, backup, file }: { table: BackedUpTable; backup: Backup; file: BackedUpFile },
): Promise<void> {
  for (const target of targetsOf(account, table.name))
    await loadRows(target, {
      query: `INSERT INTO ${table.name} (${toNames(table.columns)})`,
      name: `${backup.location}: ${file.file}`,
      content: backup.read(file),
      expected: file,
      queryId: `${runId}-${file.file}`,
      signal,
    });
}

/** Counts the rows of all copied tables, on all nodes. */
export async function countRows(account: ClickHouseAccount): Promise<number> {
  const skipped = NOT_COPIED.map(quoteText).join(', ');
  const sql = `SELECT toString(sum(total_rows)) FROM system.tables
    WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND name NOT IN (${skipped})`;
  const counts = await Promise.all(onEachNode(account).map((node) => readRows(createQueryRows(node)(sql))));
  return counts.reduce((sum, [row]) => sum + Number(row?.[0] ?? 0), 0);
}
