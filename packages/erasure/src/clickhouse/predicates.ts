import type { Sweep } from '../places/place.ts';

/** As the engine writes a UUID, in statements and in its list of mutations. */
export function toUuidText(id: Buffer): string {
  if (id.length !== 16) throw new RangeError('an id of a batch or an erasure has 16 bytes');
  return id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

export const NOBODY = "toFixedString('', 16)";

/**
 * Which rows of a table fall in a batch, as SQL conditions. No key stands in them: they read `erasure_targets`.
 *
 * The condition on keys is one that the sorting key or the filter `carried_keys` can use. The cut-off is each identity's
 * own, so it is looked up by key in two constant lists, which the engine makes into a hash table.
 */
export function createPredicates({ own, carried, times }: Sweep, batchId: Buffer) {
  const targets = `erasure_targets WHERE batch_id = '${toUuidText(batchId)}'`;
  const cutoffs = `SELECT concat(identity_key, environment_id) AS name, max(toUnixTimestamp64Milli(cutoff_at)) AS cutoff
    FROM ${targets} GROUP BY name`;
  // Sorted, since each list is a question of its own and both must have one order.
  const list = (element: 1 | 2) =>
    `(SELECT tupleElement(arraySort(groupArray((name, cutoff))), ${element}) FROM (${cutoffs}))`;
  const rowTime = `toUnixTimestamp64Milli(${times.length === 1 ? times[0] : `least(${times.join(', ')})`})`;
  const falls = (column: string) =>
    `(environment_id, ${column}) IN (SELECT environment_id, identity_key FROM ${targets})
      AND ${rowTime} <= transform(concat(${column}, environment_id), ${list(1)}, ${list(2)}, toInt64(-1))`;
  const anyOf = (columns: readonly string[]) => columns.map((column) => `(${falls(column)})`).join(' OR ');
  const owned = anyOf(own);
  const hits = [
    ...own.map((column) => `('${column}', 'own', ${column}, ${falls(column)})`),
    // A row that is deleted anyway is not carried by anybody.
    ...carried.map(({ key }) => `('${key}', 'carried', ${key}, ${falls(key)} AND NOT (${owned}))`),
  ];
  return {
    /** Rows that one column says fall. */
    falls,
    /** Rows that one of these columns says fall. */
    anyOf,
    /** Rows that any column says fall. */
    any: anyOf([...own, ...carried.map(({ key }) => key)]),
    /** What columns of a row say, one element each that names somebody who falls: column, how, key, true. */
    hits: `arrayFilter(hit -> hit.4, [${hits.join(', ')}])`,
  };
}
export type Predicates = ReturnType<typeof createPredicates>;
