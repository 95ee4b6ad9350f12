import { toUuidText } from '@playline/contracts';
import type { Sweep } from '../stores/store.ts';

/** Formats an id as a UUID, as ClickHouse prints it. */
export function toIdText(id: Buffer): string {
  if (id.length !== 16) throw new RangeError('batch and erasure ids must have 16 bytes');
  return toUuidText(id);
}

/** @throws RangeError for the zero key, which would match all rows without an id in the column */
export function assertKey(key: Buffer): void {
  if (key.length !== 16 || key.every((byte) => byte === 0))
    throw new RangeError('an identity key must have 16 bytes and not be zero');
}

export const NO_KEY = "toFixedString('', 16)";

/** FROM clause for a batch's targets. */
export const targetsOf = (batchId: Buffer): string => `erasure_targets WHERE batch_id = '${toIdText(batchId)}'`;
/** Selects rows whose key in `column` is a target in the batch. */
export const isTarget = (column: string, batchId: Buffer): string =>
  `(environment_id, ${column}) IN (SELECT environment_id, identity_key FROM ${targetsOf(batchId)})`;

/**
 * SQL conditions that select a batch's rows. They read the keys from `erasure_targets`, which allows ClickHouse to
 * use the sorting key or the skip index `carried_keys`. Cut-offs are two constant arrays, which ClickHouse converts to
 * a hash table.
 */
export function createPredicates({ ownKeys, carriedKeys, timeColumns: times, keptRows: kept }: Sweep, batchId: Buffer) {
  const cutoffs = `SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff
    FROM ${targetsOf(batchId)} GROUP BY name`;
  // Sorted because the two arrays come from separate queries and must have the same order.
  const list = (element: 1 | 2) =>
    `(SELECT tupleElement(arraySort(groupArray((name, cutoff))), ${element}) FROM (${cutoffs}))`;
  const rowTime = `toUnixTimestamp64Milli(${times.length === 1 ? times[0] : `least(${times.join(', ')})`})`;
  const notKept = kept === undefined ? '' : ` AND ${kept.column} NOT IN (${kept.values.map((value) => `'${value}'`)})`;
  const isErasedBy = (column: string) =>
    `${isTarget(column, batchId)}
      AND ${rowTime} <= transform(concat(${column}, environment_id), ${list(1)}, ${list(2)}, toInt64(-1))${notKept}`;
  const isErasedByAny = (columns: readonly string[]) => columns.map((column) => `(${isErasedBy(column)})`).join(' OR ');
  const owned = isErasedByAny(ownKeys);
  const hits = [
    ...ownKeys.map((column) => `('${column}', 'own', ${column}, ${isErasedBy(column)})`),
    // Deleted rows are not blanked.
    ...carriedKeys.map(({ key }) => `('${key}', 'carried', ${key}, ${isErasedBy(key)} AND NOT (${owned}))`),
  ];
  return {
    /** Selects rows to erase because of the key in a column. */
    isErasedBy,
    /** Selects rows to erase because of the key in any of these columns. */
    isErasedByAny,
    /** Selects all rows to erase. */
    isErased: isErasedByAny([...ownKeys, ...carriedKeys.map(({ key }) => key)]),
    /** Array with one tuple per column that contains an erased identity: column, how, key, true. */
    hits: `arrayFilter(hit -> hit.4, [${hits.join(', ')}])`,
  };
}
