import { pauseOrThrow, StoreFault, toErrorSummary } from '@playline/stores';
import type { ClickHouseSettings, ClickHouseTarget } from '@playline/stores/clickhouse';
import type { ErasureRows, FoundRows } from '../rows.ts';
import { DERIVED_TABLES, differencesOf } from '../stores/derived.ts';
import type { DerivedTable, SweptTable } from '../stores/store.ts';
import { ERASED_TABLES, SWEPT_TABLES } from '../stores/tables.ts';
import { type Connection, INSERTING, openConnection } from './connection.ts';
import { createPredicates, NO_KEY, toIdText } from './predicates.ts';
import { createErasureQueries, type FoundRow, toFound } from './queries.ts';
import { assertTargets, dropTargets, putTargets, withTargetsCopy } from './targets.ts';

export interface ErasureRowsOptions extends ClickHouseTarget {
  /** Most time for one change of one table; longer is a fault. */
  readonly mutationDeadlineMs?: number;
}

/** A table of a billion rows takes less. An engine that is stuck is reported within the hour. */
const MUTATION_DEADLINE_MS = 15 * 60 * 1000;
const APPLY = 'APPLY DELETED MASK';
/** Counts everything in a file: deleted rows that are only masked, and patches that are not applied yet. */
const ON_DISK: ClickHouseSettings = { apply_deleted_mask: 0, apply_patch_parts: 0 };

/** Opens the rows; connects with the first call. */
export function openErasureRows(options: ErasureRowsOptions): ErasureRows {
  const connection = openConnection(options);
  const deadlineMs = options.mutationDeadlineMs ?? MUTATION_DEADLINE_MS;
  const engineUntil = (signal: AbortSignal | undefined): Engine => ({ connection, wait: { deadlineMs, signal } });
  return {
    putTargets: (batchId, targets) => putTargets(connection, batchId, targets),
    sweep: async (batchId, signal) => {
      const engine = engineUntil(signal);
      const found: FoundRows[] = [];
      // One table after the other, because the engine has other work too.
      for (const table of SWEPT_TABLES) for (const each of await sweepTable(engine, table, batchId)) found.push(each);
      await sweepDerived({ connection, batchId }, engine.wait);
      await assertTargets(connection, batchId);
      return found;
    },
    findSurvivors: (batchId) => findEverywhere({ connection, batchId }, {}, findDerivedSurvivors),
    findOnDisk: (batchId) => findEverywhere({ connection, batchId }, ON_DISK, findDerivedOnDisk),
    ...createErasureQueries(connection),
    awaitInserts: (signal) => awaitInserts(connection, signal),
    removeDeleted: (signal) => removeDeleted(engineUntil(signal)),
    countReplaced: (untilMs) => countReplaced(connection, untilMs),
    readBatches: async () => {
      const rows = await connection.read<{ id: string }>(
        'SELECT hex(batch_id) AS id FROM erasure_targets UNION DISTINCT SELECT hex(batch_id) AS id FROM erasure_found',
      );
      return rows.map(({ id }) => Buffer.from(id, 'hex'));
    },
    dropTargets: (batchId) => dropTargets(connection, batchId),
    close: () => connection.close(),
  };
}

interface Engine {
  readonly connection: Connection;
  readonly wait: MutationWait;
}

async function findEverywhere(
  batch: Batch,
  settings: ClickHouseSettings,
  findDerived: (batch: Batch) => Promise<FoundRows[]>,
): Promise<FoundRows[]> {
  const { connection, batchId } = batch;
  const found: FoundRows[] = [];
  for (const table of SWEPT_TABLES)
    for (const each of await findRows(connection, table, { batchId, settings })) found.push(each);
  // As long as there are rows, what is derived from them may be there too.
  if (found.length === 0) for (const each of await findDerived(batch)) found.push(each);
  await assertTargets(connection, batchId);
  return found;
}

async function findRows(
  connection: Connection,
  { name, clearing }: SweptTable,
  { batchId, settings }: { batchId: Buffer; settings: ClickHouseSettings },
): Promise<FoundRows[]> {
  const { hits, any } = createPredicates(clearing, batchId);
  const rows = await connection.read<FoundRow>(
    `SELECT hit.1 AS column, hit.2 AS how, environment_id, lower(hex(hit.3)) AS key, count() AS rows
     FROM ${name} ARRAY JOIN ${hits} AS hit WHERE ${any} GROUP BY column, how, environment_id, key`,
    {},
    settings,
  );
  return toFound(name, rows);
}

/** Notes where the rows of the batch are in a table. Replaces what was noted before. */
async function locateRows(
  connection: Connection,
  { name, clearing }: SweptTable,
  batchId: Buffer,
): Promise<FoundRows[]> {
  const { hits, any } = createPredicates(clearing, batchId);
  const batch = toIdText(batchId);
  await connection.run(`ALTER TABLE erasure_found DROP PARTITION ('${batch}', '${name}')`);
  await connection.run(
    `INSERT INTO erasure_found
     SELECT '${batch}', '${name}', hit.1, hit.2, environment_id, hit.3, _part, _part_offset
     FROM ${name} ARRAY JOIN ${hits} AS hit WHERE ${any}`,
    INSERTING,
  );
  const rows = await connection.read<FoundRow>(
    `SELECT column_name AS column, how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
     FROM erasure_found WHERE batch_id = '${batch}' AND table_name = '${name}' GROUP BY column, how, environment_id, key`,
  );
  return toFound(name, rows);
}

/** Whether rows of the batch were located in a table before. If so, they have moved since, or the eraser died. */
async function wasSwept(connection: Connection, { name }: SweptTable, batchId: Buffer): Promise<boolean> {
  const rows = await connection.read<{ places: number }>(
    `SELECT count() AS places FROM erasure_found WHERE batch_id = '${toIdText(batchId)}' AND table_name = '${name}'`,
  );
  return oneOf(rows).places > 0;
}

/**
 * Deletes and blanks only parts in which something was found, because a change is recorded in every part it touches.
 * Rows whose part is merged or changed after the look stay, and are found as survivors. So when a batch is swept again,
 * rows are deleted by key: this reads more and misses nothing. Otherwise merges could move rows faster than the looks
 * find them.
 */
async function sweepTable({ connection, wait }: Engine, table: SweptTable, batchId: Buffer): Promise<FoundRows[]> {
  const again = await wasSwept(connection, table, batchId);
  const found = await locateRows(connection, table, batchId);
  const mark = toIdText(batchId);
  const { falls, anyOf } = createPredicates(table.clearing, batchId);
  const own = [...new Set(found.filter(({ as }) => as === 'own').map(({ column }) => column))];
  if (own.length > 0) {
    const places = `SELECT part, part_offset FROM erasure_found
      WHERE batch_id = '${mark}' AND table_name = '${table.name}' AND how = 'own'`;
    const where = again ? anyOf(own) : `(_part, _part_offset) IN (${places})`;
    await runMutation(
      connection,
      { table: table.name, statement: `DELETE FROM ${table.name} WHERE ${where}`, mark },
      wait,
    );
  }
  const carried = found.filter(({ as }) => as === 'carried').map(({ column }) => column);
  for (const { key, texts } of table.clearing.carried.filter((each) => carried.includes(each.key))) {
    const blanks = [`${key} = ${NO_KEY}`, ...texts.map((text) => `${text} = ''`)].join(', ');
    const change = `ALTER TABLE ${table.name} UPDATE ${blanks} WHERE ${falls(key)}`;
    await runMutation(connection, { table: table.name, statement: change, mark }, wait);
  }
  return found;
}

/** One table at a time, and only tables that have a part with deleted rows: every such part is rewritten. */
async function removeDeleted({ connection, wait }: Engine): Promise<number> {
  const masked = await connection.read<{ table: string }>(
    'SELECT DISTINCT table FROM system.parts WHERE database = currentDatabase() AND active AND has_lightweight_delete',
  );
  const tables = ERASED_TABLES.map(({ name }) => name).filter((name) => masked.some(({ table }) => table === name));
  for (const table of tables)
    await runMutation(connection, { table, statement: `ALTER TABLE ${table} ${APPLY}`, mark: APPLY }, wait);
  // The dictionary holds in memory whom identity_overrides had when it was loaded.
  await connection.run('SYSTEM RELOAD DICTIONARY identity_persons');
  const rows = await connection.read<{ ms: number }>("SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS ms");
  return oneOf(rows).ms;
}

const KEPT_TABLES = [...ERASED_TABLES.map(({ name }) => name), 'erasure_targets', 'erasure_found', 'erasure_progress'];

/** A part that was replaced or dropped stays on disk for `old_parts_lifetime`, eight minutes, in case of a crash. */
async function countReplaced(connection: Connection, untilMs: number): Promise<number> {
  const names = KEPT_TABLES.map((name) => `'${name}'`).join(', ');
  const rows = await connection.read<{ parts: number }>(
    `SELECT count() AS parts FROM system.parts WHERE database = currentDatabase() AND NOT active
       AND table IN (${names}) AND remove_time <= fromUnixTimestamp64Milli({until: Int64}, 'UTC')`,
    { until: untilMs },
  );
  return oneOf(rows).parts;
}

function oneOf<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined) throw new Error('the engine counted, but gave no row');
  return row;
}

/** Whose rows a statement is about. */
interface Batch {
  readonly connection: Connection;
  readonly batchId: Buffer;
}

/** Later than any time that the contract allows. */
const FAR = '2299-12-31 00:00:00';
/** Shows deleted rows too; a column says which are deleted. */
const MASKED: ClickHouseSettings = { apply_deleted_mask: 0, apply_patch_parts: 0 };

const targetsOf = (batchId: Buffer) => `erasure_targets WHERE batch_id = '${toIdText(batchId)}'`;
const ofTargets = (batchId: Buffer) =>
  `(environment_id, identity_key) IN (SELECT environment_id, identity_key FROM ${targetsOf(batchId)})`;

/**
 * Deletes the batch's rows from the derived tables and derives them again from the remaining events, which are all
 * later than the cut-off. Subtracting is not possible: a minimum does not say what it would be without one event.
 *
 * An insert that runs meanwhile writes the event and its derived row in no fixed order. So after the delete all running
 * inserts are awaited, and the derivation sees their events. They are also awaited before: a wait that fails should do so
 * while nothing is deleted.
 *
 * An eraser that was paused may do this when another one has finished the batch, and nobody would repeat it. So once it
 * begins to delete, it also derives: the signal is not heard any more, a delete that fails changes nothing about it (rows
 * that are derived meanwhile are too young for the delete), and the derivation has a list of the identities of its own,
 * because the batch's is dropped at any time. If the process dies there, is paused for hours, or the store cannot derive,
 * the daily scrub finds the missing rows.
 * @param wait for changes of the tables; its signal is heard until the deletes begin
 */
async function sweepDerived({ connection, batchId }: Batch, wait: MutationWait): Promise<void> {
  await awaitInserts(connection, wait.signal);
  await withTargetsCopy(connection, batchId, async (own) => {
    wait.signal?.throwIfAborted();
    try {
      await deleteDerived({ connection, batchId }, { ...wait, signal: undefined });
      await awaitInserts(connection);
    } finally {
      await deriveAgain({ connection, batchId: own });
    }
  });
}

async function deleteDerived({ connection, batchId }: Batch, wait: MutationWait): Promise<void> {
  for (const { name } of DERIVED_TABLES) {
    const where = ofTargets(batchId);
    const [{ rows } = { rows: 0 }] = await connection.read<{ rows: number }>(
      `SELECT count() AS rows FROM ${name} WHERE ${where}`,
    );
    if (rows === 0) continue;
    const mutation = { table: name, statement: `DELETE FROM ${name} WHERE ${where}`, mark: toIdText(batchId) };
    await runMutation(connection, mutation, wait);
  }
}

async function deriveAgain(batch: Batch): Promise<void> {
  for (const table of DERIVED_TABLES)
    await batch.connection.run(`INSERT INTO ${table.name} SELECT * FROM ${await derivedOf(table, batch)}`, {
      ...INSERTING,
      max_partitions_per_insert_block: '10000',
    });
}

/** What the events now say about the batch's identities. */
async function derivedOf({ clearing }: DerivedTable, { connection, batchId }: Batch): Promise<string> {
  const [{ since } = { since: FAR }] = await connection.read<{ since: string }>(
    `SELECT toString(min(cutoff_at)) AS since FROM ${targetsOf(batchId)}`,
  );
  return `${clearing.view}(since = '${since}', until = '${FAR}') WHERE ${ofTargets(batchId)}`;
}

/**
 * Finds derived rows about the batch that no event supports any more. For people who came back it also finds what
 * events say and no derived row does. Repeating the sweep until nothing is found makes both right.
 */
async function findDerivedSurvivors(batch: Batch, signal?: AbortSignal): Promise<FoundRows[]> {
  const first = await findDifferent(batch);
  if (first.length === 0) return first;
  // While an insert runs, an event and its derived row may not be visible at the same moment.
  await awaitInserts(batch.connection, signal);
  return findDifferent(batch);
}

/**
 * Like survivors, but with deleted rows that are still in files: they are only masked until the files are rewritten.
 */
async function findDerivedOnDisk(batch: Batch): Promise<FoundRows[]> {
  const found = await findDerivedSurvivors(batch);
  for (const { name } of DERIVED_TABLES) {
    const rows = await batch.connection.read<FoundRow>(
      `SELECT 'identity_key' AS column, 'own' AS how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
       FROM ${name} WHERE ${ofTargets(batch.batchId)} AND NOT _row_exists GROUP BY environment_id, key`,
      {},
      MASKED,
    );
    for (const each of toFound(name, rows)) found.push(each);
  }
  return found;
}

async function findDifferent(batch: Batch): Promise<FoundRows[]> {
  const found: FoundRows[] = [];
  for (const table of DERIVED_TABLES) {
    const stored = `${table.name} WHERE ${ofTargets(batch.batchId)}`;
    const different = differencesOf(table, { stored, derived: await derivedOf(table, batch) });
    const rows = await batch.connection.read<FoundRow>(
      `SELECT 'identity_key' AS column, 'own' AS how, environment_id, lower(hex(identity_key)) AS key, count() AS rows
       FROM (${different}) GROUP BY environment_id, key`,
    );
    for (const each of toFound(table.name, rows)) found.push(each);
  }
  return found;
}

const POLL_MS = 100;
/** The engine ends an insert of a service after a minute (`max_execution_time` of its account). */
const INSERT_MAX_MS = 90_000;

/**
 * Waits for the end of all inserts into this database that are running when it is called. Services share an account, so
 * each sees all inserts. Inserts of erasures are not awaited: they write no row about anybody, and may take minutes.
 */
async function awaitInserts(connection: Connection, signal?: AbortSignal): Promise<void> {
  const readRunning = async () => {
    const rows = await connection.read<{ id: string }>(
      `SELECT query_id AS id FROM system.processes
       WHERE query_kind = 'Insert' AND current_database = currentDatabase() AND NOT startsWith(query, 'INSERT INTO erasure_')`,
    );
    return rows.map(({ id }) => id);
  };
  const awaited = new Set(await readRunning());
  const end = performance.now() + INSERT_MAX_MS;
  while (awaited.size > 0) {
    if (performance.now() > end) {
      const words = `ClickHouse INSERT_WAIT: an insert runs for more than ${INSERT_MAX_MS} ms`;
      throw new StoreFault(words, { kind: 'passing', code: 'INSERT_WAIT' });
    }
    await pauseOrThrow(POLL_MS, signal);
    const running = await readRunning();
    for (const id of awaited) if (!running.includes(id)) awaited.delete(id);
  }
}

/** A change of existing rows, which the engine makes in the background. */
interface Mutation {
  readonly table: string;
  readonly statement: string;
  /** Text of the statement that no other mutation of the table contains, except other attempts at this one. */
  readonly mark: string;
}

interface MutationWait {
  /** After this long, waiting for one mutation is a fault. The mutation continues, and a repetition finds it. */
  readonly deadlineMs: number;
  /** Ends the wait likewise. */
  readonly signal: AbortSignal | undefined;
}

/** A small mutation takes about 50 ms. A large one is asked for twice a second. */
const POLL_MIN_MS = 20;
const POLL_MAX_MS = 500;

/**
 * Masks deleted rows inside their parts. Patches beside the parts would not all be removed by one APPLY DELETED MASK.
 */
const SUBMIT: ClickHouseSettings = {
  lightweight_delete_mode: 'alter_update',
  lightweight_deletes_sync: '0',
  mutations_sync: '0',
};

interface Unfinished {
  readonly mutation_id: string;
  readonly latest_fail_reason: string;
}

/**
 * Runs a mutation to its end. What an earlier attempt left unfinished ends first, so attempts never pile up; rows that
 * came behind it are the new one's.
 *
 * The statement only notes the mutation and the wait is ours: a connection need not stand for as long as a table takes,
 * and a mutation that fails is taken back. Otherwise the engine would try it for ever, and every later one behind it.
 * @throws StoreFault when it fails, or one that stands before it does; the reason of the signal
 */
async function runMutation(connection: Connection, mutation: Mutation, wait: MutationWait): Promise<void> {
  await awaitEnd(connection, mutation, wait);
  wait.signal?.throwIfAborted();
  await connection.run(mutation.statement, SUBMIT);
  await awaitEnd(connection, mutation, wait);
}

async function awaitEnd(
  connection: Connection,
  mutation: Mutation,
  { deadlineMs, signal }: MutationWait,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MAX_MS)) {
    const unfinished = await readUnfinished(connection, mutation);
    if (unfinished.length === 0) return;
    const failed = unfinished.find(({ latest_fail_reason }) => latest_fail_reason !== '');
    if (failed !== undefined) {
      await takeBack(connection, mutation, unfinished);
      throw faultOf(mutation, toErrorSummary(failed.latest_fail_reason), 'MUTATION_FAILED');
    }
    if (performance.now() > end) throw faultOf(mutation, `not done within ${deadlineMs} ms`, 'MUTATION_WAIT');
    await pauseOrThrow(pauseMs, signal);
  }
}

const faultOf = ({ table }: Mutation, words: string, code: string) =>
  new StoreFault(`ClickHouse ${code}: mutation of ${table}: ${words}`, { kind: 'passing', code });

function readUnfinished(connection: Connection, { table, mark }: Mutation): Promise<Unfinished[]> {
  return connection.read<Unfinished>(
    `SELECT mutation_id, latest_fail_reason FROM system.mutations
     WHERE database = currentDatabase() AND table = {table: String} AND NOT is_done AND NOT is_killed
       AND position(command, {mark: String}) > 0`,
    { table, mark },
  );
}

async function takeBack(connection: Connection, { table }: Mutation, unfinished: readonly Unfinished[]): Promise<void> {
  const ids = unfinished.map(({ mutation_id }) => `'${mutation_id}'`).join(', ');
  await connection.run(
    `KILL MUTATION WHERE database = currentDatabase() AND table = '${table}' AND mutation_id IN (${ids})`,
  );
}
