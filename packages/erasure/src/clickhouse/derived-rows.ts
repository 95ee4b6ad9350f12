import type { ClickHouseSettings } from '@playline/stores/clickhouse';
import { DERIVED_TABLES, differencesOf } from '../places/derived.ts';
import type { DerivedTable } from '../places/place.ts';
import type { FoundRows } from '../rows.ts';
import { type Connection, INSERTING } from './connection.ts';
import { type FoundRow, toFound } from './found-rows.ts';
import { awaitInserts } from './inserts.ts';
import { type MutationWait, runMutation } from './mutations.ts';
import { toIdText } from './predicates.ts';
import { withCopy } from './targets.ts';

/** Whose rows a statement is about. */
export interface Batch {
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
export async function sweepDerived({ connection, batchId }: Batch, wait: MutationWait): Promise<void> {
  await awaitInserts(connection, wait.signal);
  await withCopy(connection, batchId, async (own) => {
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
export async function findDerivedSurvivors(batch: Batch, signal?: AbortSignal): Promise<FoundRows[]> {
  const first = await findDifferent(batch);
  if (first.length === 0) return first;
  // While an insert runs, an event and its derived row may not be visible at the same moment.
  await awaitInserts(batch.connection, signal);
  return findDifferent(batch);
}

/**
 * Like survivors, but with deleted rows that are still in files: they are only masked until the files are rewritten.
 */
export async function findDerivedOnDisk(batch: Batch): Promise<FoundRows[]> {
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
