import { toUuidText } from '@playline/contracts';
import type { Sweep } from '../stores/store.ts';

/** As the engine writes a UUID, in statements and in its list of mutations. */
export function toIdText(id: Buffer): string {
  if (id.length !== 16) throw new RangeError('an id of a batch or an erasure has 16 bytes');
  return toUuidText(id);
}

export const NO_KEY = "toFixedString('', 16)";

/**
 * Which rows of a table belong to a batch, as SQL conditions. They contain no key: they read `erasure_targets`.
 *
 * The condition on keys is one that the sorting key or the skip index `carried_keys` can use. Each identity has its own
 * cut-off, so it is looked up by key in two constant lists, which the engine turns into a hash table.
 */
export function createPredicates({ own, carried, times, kept }: Sweep, batchId: Buffer) {
  const targets = `erasure_targets WHERE batch_id = '${toIdText(batchId)}'`;
  const cutoffs = `SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff
    FROM ${targets} GROUP BY name`;
  // Sorted, because each list is a query of its own and both must have the same order.
  const list = (element: 1 | 2) =>
    `(SELECT tupleElement(arraySort(groupArray((name, cutoff))), ${element}) FROM (${cutoffs}))`;
  const rowTime = `toUnixTimestamp64Milli(${times.length === 1 ? times[0] : `least(${times.join(', ')})`})`;
  const notKept = kept === undefined ? '' : ` AND ${kept.column} NOT IN (${kept.values.map((value) => `'${value}'`)})`;
  const falls = (column: string) =>
    `(environment_id, ${column}) IN (SELECT environment_id, identity_key FROM ${targets})
      AND ${rowTime} <= transform(concat(${column}, environment_id), ${list(1)}, ${list(2)}, toInt64(-1))${notKept}`;
  const anyOf = (columns: readonly string[]) => columns.map((column) => `(${falls(column)})`).join(' OR ');
  const owned = anyOf(own);
  const hits = [
    ...own.map((column) => `('${column}', 'own', ${column}, ${falls(column)})`),
    // A row that is deleted anyway needs no blanking.
    ...carried.map(({ key }) => `('${key}', 'carried', ${key}, ${falls(key)} AND NOT (${owned}))`),
  ];
  return {
    /** Rows that one column marks for erasure. */
    falls,
    /** Rows that one of these columns marks for erasure. */
    anyOf,
    /** Rows that any column marks for erasure. */
    any: anyOf([...own, ...carried.map(({ key }) => key)]),
    /** What columns of a row say, one element each that names somebody who falls: column, how, key, true. */
    hits: `arrayFilter(hit -> hit.4, [${hits.join(', ')}])`,
  };
}
export type Predicates = ReturnType<typeof createPredicates>;
