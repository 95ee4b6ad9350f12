import {
  awaitInserts,
  createClusterCheck,
  IS_INSERT,
  onEachNode,
  pauseOrThrow,
  StoreFault,
  toErrorSummary,
} from '@playline/stores';
import type { ClickHouseSettings, ClickHouseTarget } from '@playline/stores/clickhouse';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { DERIVED_TABLES, differencesOf } from '../stores/derived.ts';
import type { DerivedTable, SweptTable } from '../stores/store.ts';
import { ERASED_TABLES, SWEPT_TABLES } from '../stores/tables.ts';
import { type Connection, INSERT_SETTINGS, openConnection } from './connection.ts';
import { joinNodes } from './nodes.ts';
import { createPredicates, isTarget, NO_KEY, targetsOf, toIdText } from './predicates.ts';
import { createErasureQueries, type FoundRow, toFound } from './queries.ts';
import { assertTargets, dropTargets, putTargets, withTargetsCopy } from './targets.ts';

export interface ErasureRowsOptions extends ClickHouseTarget {
  /** Deadline per mutation. Default: 15 minutes. */
  readonly mutationDeadlineMs?: number;
}

/** Sufficient for a table with a billion rows. */
const MUTATION_DEADLINE_MS = 15 * 60 * 1000;
const APPLY = 'APPLY DELETED MASK';
/** Reads all rows in the files, including masked rows, and ignores patches that are not applied yet. */
const ON_DISK: ClickHouseSettings = { apply_deleted_mask: 0, apply_patch_parts: 0 };

interface Batch {
  readonly connection: Connection;
  readonly batchId: Buffer;
}

interface MutationWait {
  /** The mutation continues after the deadline, and the next attempt waits for the mutation. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Connects on the first call. */
export function openErasureRows(options: ErasureRowsOptions): ErasureRows {
  const check = createClusterCheck(options);
  const nodes = onEachNode(options).map((node, shard): ErasureRows => {
    const rows = openNodeRows(node);
    /** A search that misses a node proves nothing. Nodes may be added while the process runs. */
    const checked = (find: ErasureRows['findSurvivors']) => async (batchId: Buffer) => {
      const found = await find(batchId);
      await check.assert(shard);
      return found;
    };
    return {
      ...rows,
      async putTargets(batchId, targets) {
        await check.assert(shard);
        await rows.putTargets(batchId, targets);
      },
      findSurvivors: checked(rows.findSurvivors),
      findOnDisk: checked(rows.findOnDisk),
      ready: async () => (await rows.ready()) && (await check.isMatching()),
    };
  });
  return nodes.length === 1 ? nodes[0]! : joinNodes(nodes);
}

function openNodeRows(options: ErasureRowsOptions): ErasureRows {
  const connection = openConnection(options);
  const deadlineMs = options.mutationDeadlineMs ?? MUTATION_DEADLINE_MS;
  return {
    ...createErasureQueries(connection),
    putTargets: (batchId, targets) => putTargets(connection, batchId, targets),
    async sweep(batchId, signal) {
      const batch = { connection, batchId };
      const wait = { deadlineMs, signal };
      const found: FoundRows[] = [];
      // Sequential, to leave resources for other queries.
      for (const table of SWEPT_TABLES) for (const each of await sweepTable(batch, table, wait)) found.push(each);
      await sweepDerived(batch, wait);
      await assertTargets(connection, batchId);
      return found;
    },
    findSurvivors: (batchId) => findEverywhere({ connection, batchId }, {}, findDerivedSurvivors),
    findOnDisk: (batchId) => findEverywhere({ connection, batchId }, ON_DISK, findDerivedOnDisk),
    awaitInserts: (signal) => awaitOtherInserts(connection, signal),
    removeDeleted: (signal) => removeDeleted(connection, { deadlineMs, signal }),
    countReplaced: (untilMs) => countReplaced(connection, untilMs),
    async readBatches() {
      const rows = await connection.read<{ id: string }>(
        'SELECT hex(batch_id) AS id FROM erasure_targets UNION DISTINCT SELECT hex(batch_id) AS id FROM erasure_found',
      );
      return rows.map(({ id }) => Buffer.from(id, 'hex'));
    },
    dropTargets: (batchId) => dropTargets(connection, batchId),
    ready: () => connection.ready(),
    close: () => connection.close(),
  };
}

async function findEverywhere(
  batch: Batch,
  settings: ClickHouseSettings,
  findDerived: (batch: Batch) => Promise<FoundRows[]>,
): Promise<FoundRows[]> {
  const { connection, batchId } = batch;
  const found: FoundRows[] = [];
  for (const { name, clearing } of SWEPT_TABLES) {
    const { hits, isErased } = createPredicates(clearing, batchId);
    const rows = await connection.read<FoundRow>(
      `SELECT hit.1 AS column, hit.2 AS how, environment_id, lower(hex(hit.3)) AS key, count() AS rows
       FROM ${name} ARRAY JOIN ${hits} AS hit WHERE ${isErased} GROUP BY column, how, environment_id, key`,
      {},
      settings,
    );
    for (const each of toFound(name, rows)) found.push(each);
  }
  // Derived rows of surviving events are expected, so search them only if no event survives.
  if (found.length === 0) for (const each of await findDerived(batch)) found.push(each);
  await assertTargets(connection, batchId);
  return found;
}

/** Finds the batch's rows in a table and replaces their locations in `erasure_found`. */
async function locateRows({ connection, batchId }: Batch, { name, clearing }: SweptTable): Promise<FoundRows[]> {
  const { hits, isErased } = createPredicates(clearing, batchId);
  const batch = toIdText(batchId);
  await connection.run(`ALTER TABLE erasure_found DROP PARTITION ('${batch}', '${name}')`);
  await connection.run(
    `INSERT INTO erasure_found
     SELECT '${batch}', '${name}', hit.1, hit.2, environment_id, hit.3, _part, _part_offset
     FROM ${name} ARRAY JOIN ${hits} AS hit WHERE ${isErased}`,
    INSERT_SETTINGS,
  );
  const rows = await connection.read<FoundRow>(
    `SELECT column_name AS column, how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
     FROM erasure_found WHERE batch_id = '${batch}' AND table_name = '${name}' GROUP BY column, how, environment_id, key`,
  );
  return toFound(name, rows);
}

/**
 * Deletes by part and offset, so that the mutation rewrites only parts that contain found rows. Rows that a merge moves
 * before the delete survive. A repeated sweep therefore deletes by key, which reads more rows but is unaffected by
 * merges.
 */
async function sweepTable(batch: Batch, table: SweptTable, wait: MutationWait): Promise<FoundRows[]> {
  const { connection, batchId } = batch;
  const marker = toIdText(batchId);
  const located = `erasure_found WHERE batch_id = '${marker}' AND table_name = '${table.name}'`;
  const known = await readOne<{ rows: number }>(connection, `SELECT count() AS rows FROM ${located}`);
  const found = await locateRows(batch, table);
  const { isErasedBy, isErasedByAny } = createPredicates(table.clearing, batchId);
  const own = [...new Set(found.filter(({ as }) => as === 'own').map(({ column }) => column))];
  if (own.length > 0) {
    const locations = `SELECT part, part_offset FROM ${located} AND how = 'own'`;
    const where = known.rows > 0 ? isErasedByAny(own) : `(_part, _part_offset) IN (${locations})`;
    const statement = `DELETE FROM ${table.name} WHERE ${where}`;
    const before = () => (table.name === 'events' ? holdDays(connection, where) : Promise.resolve());
    await runMutation(connection, { table: table.name, statement, marker, before }, wait);
  }
  const carried = found.filter(({ as }) => as === 'carried').map(({ column }) => column);
  for (const { key, idColumns } of table.clearing.carriedKeys.filter((each) => carried.includes(each.key))) {
    const blanks = [`${key} = ${NO_KEY}`, ...idColumns.map((column) => `${column} = ''`)].join(', ');
    const statement = `ALTER TABLE ${table.name} UPDATE ${blanks} WHERE ${isErasedBy(key)}`;
    await runMutation(connection, { table: table.name, statement, marker }, wait);
  }
  return found;
}

/** Longer than it takes to find the days and to submit a mutation. No day is counted while a mutation is unfinished. */
const HOLD_S = 900;

/** Marks the days of the rows as not counted before they are deleted (infra/clickhouse/schema/23-event-days.sql). */
async function holdDays(connection: Connection, where: string): Promise<void> {
  await connection.run(
    `INSERT INTO counted_days (environment_id, day, stored_at)
     SELECT DISTINCT environment_id, toDate(event_time), now64(3, 'UTC') + toIntervalSecond(${HOLD_S})
     FROM events WHERE ${where}`,
    INSERT_SETTINGS,
  );
}

/** Rewrites all parts that contain deleted rows, one table at a time. */
async function removeDeleted(connection: Connection, wait: MutationWait): Promise<number> {
  const masked = await connection.read<{ table: string }>(
    'SELECT DISTINCT table FROM system.parts WHERE database = currentDatabase() AND active AND has_lightweight_delete',
  );
  const tables = ERASED_TABLES.map(({ name }) => name).filter((name) => masked.some(({ table }) => table === name));
  for (const table of tables)
    await runMutation(connection, { table, statement: `ALTER TABLE ${table} ${APPLY}`, marker: APPLY }, wait);
  // The dictionary caches identity_overrides in memory.
  await connection.run('SYSTEM RELOAD DICTIONARY identity_persons');
  const now = "SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS ms";
  return (await readOne<{ ms: number }>(connection, now)).ms;
}

const FILE_TABLES = [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found', 'erasure_progress'];

/** Replaced and dropped parts remain on disk for eight minutes (`old_parts_lifetime`). */
async function countReplaced(connection: Connection, until: number): Promise<number> {
  const names = FILE_TABLES.map((name) => `'${name}'`).join(', ');
  const query = `SELECT count() AS parts FROM system.parts WHERE database = currentDatabase() AND NOT active
    AND table IN (${names}) AND remove_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')`;
  return (await readOne<{ parts: number }>(connection, query, { until })).parts;
}

async function readOne<T>(connection: Connection, query: string, params: Record<string, unknown> = {}): Promise<T> {
  const [row] = await connection.read<T>(query, params);
  if (row === undefined) throw new Error('ClickHouse returned no row for an aggregate query');
  return row;
}

/** Later than any time allowed by the contract. */
const FAR_FUTURE = '2299-12-31 00:00:00';

/**
 * Deletes the batch's derived rows and rederives them from the remaining events. Running inserts write an event and its
 * derived row in no fixed order, so this function waits for running inserts before the delete (if this wait fails,
 * nothing is deleted) and after it. The rederivation follows every delete, even if the delete fails or the signal is
 * aborted. It uses a copy of the targets because another eraser may finish and drop the batch. After a crash, the daily
 * scrub finds the missing rows.
 */
async function sweepDerived({ connection, batchId }: Batch, wait: MutationWait): Promise<void> {
  await awaitOtherInserts(connection, wait.signal);
  await withTargetsCopy(connection, batchId, async (copyId) => {
    wait.signal?.throwIfAborted();
    try {
      for (const { name } of DERIVED_TABLES) {
        const where = isTarget('identity_key', batchId);
        const count = `SELECT count() AS rows FROM ${name} WHERE ${where}`;
        const { rows } = await readOne<{ rows: number }>(connection, count);
        if (rows === 0) continue;
        const mutation = { table: name, statement: `DELETE FROM ${name} WHERE ${where}`, marker: toIdText(batchId) };
        await runMutation(connection, mutation, { ...wait, signal: undefined });
      }
      await awaitOtherInserts(connection);
    } finally {
      const settings = { ...INSERT_SETTINGS, max_partitions_per_insert_block: '10000' };
      for (const table of DERIVED_TABLES) {
        const derived = await selectDerived(table, { connection, batchId: copyId });
        await connection.run(`INSERT INTO ${table.name} SELECT * FROM ${derived}`, settings);
      }
    }
  });
}

/** FROM clause that derives the batch's rows from the remaining events. */
async function selectDerived({ clearing }: DerivedTable, { connection, batchId }: Batch): Promise<string> {
  const query = `SELECT toString(min(cutoff_at)) AS since FROM ${targetsOf(batchId)}`;
  const { since } = await readOne<{ since: string }>(connection, query);
  return `${clearing.view}(since = '${since}', until = '${FAR_FUTURE}') WHERE ${isTarget('identity_key', batchId)}`;
}

/** Finds derived rows without events and missing derived rows. A sweep repairs both. */
async function findDerivedSurvivors(batch: Batch): Promise<FoundRows[]> {
  const first = await findDifferences(batch);
  if (first.length === 0) return first;
  // During an insert, an event and its derived row may become visible at different times.
  await awaitOtherInserts(batch.connection);
  return findDifferences(batch);
}

/** Finds survivors and deleted rows that are still in files. */
async function findDerivedOnDisk(batch: Batch): Promise<FoundRows[]> {
  const found = await findDerivedSurvivors(batch);
  for (const { name } of DERIVED_TABLES) {
    const masked = `${name} WHERE ${isTarget('identity_key', batch.batchId)} AND NOT _row_exists`;
    for (const each of await countByIdentity(batch, name, masked, ON_DISK)) found.push(each);
  }
  return found;
}

async function findDifferences(batch: Batch): Promise<FoundRows[]> {
  const found: FoundRows[] = [];
  for (const table of DERIVED_TABLES) {
    const stored = `${table.name} WHERE ${isTarget('identity_key', batch.batchId)}`;
    const differences = differencesOf(table, { stored, derived: await selectDerived(table, batch) });
    for (const each of await countByIdentity(batch, table.name, `(${differences})`, {})) found.push(each);
  }
  return found;
}

async function countByIdentity({ connection }: Batch, table: string, from: string, settings: ClickHouseSettings) {
  const rows = await connection.read<FoundRow>(
    `SELECT 'identity_key' AS column, 'own' AS how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
     FROM ${from} GROUP BY environment_id, key`,
    {},
    settings,
  );
  return toFound(table, rows);
}

/** Waits for all running inserts into this database, except those that insert no rows of persons. */
const awaitOtherInserts = (connection: Connection, signal?: AbortSignal): Promise<void> =>
  awaitInserts(async () => {
    const rows = await connection.read<{ id: string }>(
      `SELECT query_id AS id FROM system.processes
       WHERE ${IS_INSERT} AND NOT match(query, '^INSERT INTO (erasure_|counted_days|event_(days|counts|delays)|player_counts)')`,
    );
    return rows.map(({ id }) => id);
  }, signal);

interface Mutation {
  readonly table: string;
  readonly statement: string;
  /** Substring that identifies all attempts at this mutation. */
  readonly marker: string;
  /** Called when earlier attempts have ended. */
  readonly before?: () => Promise<void>;
}

/** Small mutations take about 50 ms. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/** Masks deleted rows within their parts. Patch parts would survive a single APPLY DELETED MASK. */
const SUBMIT: ClickHouseSettings = {
  lightweight_delete_mode: 'alter_update',
  lightweight_deletes_sync: '0',
  mutations_sync: '0',
};

/**
 * Waits for earlier attempts at a mutation, then submits the mutation and polls until it finishes. Polling occupies no
 * connection and allows killing a failed mutation, which ClickHouse would otherwise retry forever, blocking all later
 * mutations.
 * @throws StoreFault if an attempt fails; the signal's reason if it is aborted
 */
async function runMutation(connection: Connection, mutation: Mutation, wait: MutationWait): Promise<void> {
  await awaitEnd(connection, mutation, wait);
  wait.signal?.throwIfAborted();
  await mutation.before?.();
  await connection.run(mutation.statement, SUBMIT);
  await awaitEnd(connection, mutation, wait);
}

async function awaitEnd(
  connection: Connection,
  { table, marker }: Mutation,
  { deadlineMs, signal }: MutationWait,
): Promise<void> {
  const toFault = (message: string, code: string) =>
    new StoreFault(`ClickHouse ${code}: mutation of ${table}: ${message}`, { kind: 'transient', code });
  const end = performance.now() + deadlineMs;
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    const unfinished = await connection.read<{ mutation_id: string; latest_fail_reason: string }>(
      `SELECT mutation_id, latest_fail_reason FROM system.mutations
       WHERE database = currentDatabase() AND table = {table: String} AND NOT is_done AND NOT is_killed
         AND position(command, {marker: String}) > 0`,
      { table, marker },
    );
    if (unfinished.length === 0) return;
    const failed = unfinished.find(({ latest_fail_reason }) => latest_fail_reason !== '');
    if (failed !== undefined) {
      const ids = unfinished.map(({ mutation_id }) => `'${mutation_id}'`).join(', ');
      const failing = `database = currentDatabase() AND table = '${table}' AND mutation_id IN (${ids})`;
      await connection.run(`KILL MUTATION WHERE ${failing}`);
      throw toFault(toErrorSummary(failed.latest_fail_reason), 'MUTATION_FAILED');
    }
    if (performance.now() > end) throw toFault(`not finished within ${deadlineMs} ms`, 'MUTATION_WAIT');
    await pauseOrThrow(pauseMs, signal);
  }
}
