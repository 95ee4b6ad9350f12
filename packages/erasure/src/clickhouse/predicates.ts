import { toUuidText } from '@playline/contracts';
import type { Sweep } from '../stores/store.ts';

/** The UUID text of an id, as ClickHouse prints it. */
export function toIdText(id: Buffer): string {
  if (id.length !== 16) throw new RangeError('ids of batches and erasures have 16 bytes');
  return toUuidText(id);
}

/** @throws RangeError for the zero key, which would match everyone without an id of a kind */
export function assertKey(key: Buffer): void {
  if (key.length !== 16 || key.every((byte) => byte === 0))
    throw new RangeError('an identity key has 16 bytes and is not zero');
}

export const NO_KEY = "toFixedString('', 16)";

/** FROM clause of the targets of a batch. */
export const targetsOf = (batchId: Buffer): string => `erasure_targets WHERE batch_id = '${toIdText(batchId)}'`;
/** Selects rows whose key in this column is a target of the batch. */
export const isTarget = (column: string, batchId: Buffer): string =>
  `(environment_id, ${column}) IN (SELECT environment_id, identity_key FROM ${targetsOf(batchId)})`;

/**
 * SQL conditions that select the rows of a batch. They read the keys from `erasure_targets`, so that the sorting key or
 * the skip index `carried_keys` applies. Cut-offs come from two constant lists, which ClickHouse makes a hash table.
 */
export function createPredicates({ own, carried, times, kept }: Sweep, batchId: Buffer) {
  const cutoffs = `SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff
    FROM ${targetsOf(batchId)} GROUP BY name`;
  // Sorted, because both lists need the same order and each is its own query.
  const list = (element: 1 | 2) =>
    `(SELECT tupleElement(arraySort(groupArray((name, cutoff))), ${element}) FROM (${cutoffs}))`;
  const rowTime = `toUnixTimestamp64Milli(${times.length === 1 ? times[0] : `least(${times.join(', ')})`})`;
  const notKept = kept === undefined ? '' : ` AND ${kept.column} NOT IN (${kept.values.map((value) => `'${value}'`)})`;
  const falls = (column: string) =>
    `${isTarget(column, batchId)}
      AND ${rowTime} <= transform(concat(${column}, environment_id), ${list(1)}, ${list(2)}, toInt64(-1))${notKept}`;
  const anyOf = (columns: readonly string[]) => columns.map((column) => `(${falls(column)})`).join(' OR ');
  const owned = anyOf(own);
  const hits = [
    ...own.map((column) => `('${column}', 'own', ${column}, ${falls(column)})`),
    // A row that is deleted anyway needs no blanking.
    ...carried.map(({ key }) => `('${key}', 'carried', ${key}, ${falls(key)} AND NOT (${owned}))`),
  ];
  return {
    /** Rows that this column marks for erasure. */
    falls,
    /** Rows that one of these columns marks for erasure. */
    anyOf,
    /** Rows that any column marks for erasure. */
    any: anyOf([...own, ...carried.map(({ key }) => key)]),
    /** One element per column of a row that names an erased identity: column, how, key, true. */
    hits: `arrayFilter(hit -> hit.4, [${hits.join(', ')}])`,
  };
}
