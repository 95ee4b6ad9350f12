import { type SentColumn, StoreFault } from '@playline/stores';
import { newSearchId } from '../maintenance/batches.ts';
import type { NamedIdentity } from '../records.ts';
import type { ErasureTarget } from '../rows.ts';
import { SWEPT_TABLES } from '../stores/tables.ts';
import { type Connection, INSERT_SETTINGS } from './connection.ts';
import { assertKey, targetsOf, toIdText } from './predicates.ts';

const TARGET_COLUMNS: readonly SentColumn[] = [
  { name: 'batch_id', type: 'UUID', as: 'batch_id' },
  { name: 'environment_id', type: 'String', as: 'environment_id' },
  { name: 'identity_key', type: 'String', as: 'toFixedString(unhex(identity_key), 16)' },
  { name: 'cutoff_at', type: 'Int64', as: "fromUnixTimestamp64Milli(cutoff_at, 'UTC')" },
];

export async function putTargets(connection: Connection, batchId: Buffer, targets: readonly ErasureTarget[]) {
  const batch_id = toIdText(batchId);
  const rows = targets.map(({ environmentId: environment_id, key, cutoffMs: cutoff_at }) => {
    assertKey(key);
    return { batch_id, environment_id, identity_key: key.toString('hex'), cutoff_at };
  });
  await connection.insert('erasure_targets', TARGET_COLUMNS, { rows });
}

/** Drops a batch's partitions. Idempotent. */
export async function dropTargets(connection: Connection, batchId: Buffer): Promise<void> {
  const batch = toIdText(batchId);
  for (const { name } of SWEPT_TABLES)
    await connection.run(`ALTER TABLE erasure_found DROP PARTITION ('${batch}', '${name}')`);
  await connection.run(`ALTER TABLE erasure_targets DROP PARTITION '${batch}'`);
}

/**
 * Call this after each search: a search without targets finds no rows, which proves nothing.
 * @throws StoreFault if the batch has no targets
 */
export async function assertTargets(connection: Connection, batchId: Buffer): Promise<void> {
  const id = toIdText(batchId);
  const rows = await connection.read<{ targets: number }>(`SELECT count() AS targets FROM ${targetsOf(batchId)}`);
  if (rows[0] !== undefined && rows[0].targets > 0) return;
  throw new StoreFault(`Batch ${id} has no targets, so nothing was searched`, {
    kind: 'permanent',
    code: 'NO_TARGETS',
  });
}

/** Stores identities as targets while `search` runs. */
export function withSearchTargets<T>(
  connection: Connection,
  identities: readonly NamedIdentity[],
  search: (searchId: Buffer) => Promise<T>,
): Promise<T> {
  const targets = identities.map((identity) => ({ ...identity, cutoffMs: 0 }));
  return withTemporaryTargets(connection, (searchId) => putTargets(connection, searchId, targets), search);
}

/**
 * Copies a batch's targets while `work` runs because another process may drop the batch.
 * @throws StoreFault if the batch has no targets
 */
export function withTargetsCopy<T>(
  connection: Connection,
  batchId: Buffer,
  work: (copyId: Buffer) => Promise<T>,
): Promise<T> {
  const copy = async (copyId: Buffer) => {
    await connection.run(
      `INSERT INTO erasure_targets (batch_id, environment_id, identity_key, cutoff_at)
       SELECT '${toIdText(copyId)}', environment_id, identity_key, cutoff_at
       FROM ${targetsOf(batchId)}`,
      INSERT_SETTINGS,
    );
    await assertTargets(connection, copyId);
  };
  return withTemporaryTargets(connection, copy, work);
}

async function withTemporaryTargets<T>(
  connection: Connection,
  put: (id: Buffer) => Promise<void>,
  work: (id: Buffer) => Promise<T>,
): Promise<T> {
  const id = newSearchId(Date.now());
  try {
    await put(id);
    return await work(id);
  } finally {
    await connection.run(`ALTER TABLE erasure_targets DROP PARTITION '${toIdText(id)}'`);
  }
}
