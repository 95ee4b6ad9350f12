import type { FoundRows, NotedRows } from '@playline/erasure';
import type { ErasedPerson } from './persons.ts';

/** By store and place: `clickhouse.events`, `clickhouse.events.anonymous_key`, `redis.i`. */
export type Counts = Readonly<Record<string, number>>;

/** Rows that are blanked are told by their column, those that are deleted by their table. */
export const placeOf = ({ table, column, as }: Pick<FoundRows, 'table' | 'column' | 'as'>): string =>
  as === 'own' ? `clickhouse.${table}` : `clickhouse.${table}.${column}`;

/**
 * What a sweep found of a person, a row once: one that names the person twice, as a link does, is told once a name.
 */
export function countRows({ environmentId, keys }: ErasedPerson, { found, shared }: NotedRows): Counts {
  const names = new Set(keys.map((key) => key.toString('latin1')));
  const isTheirs = (key: Buffer) => names.has(key.toString('latin1'));
  const counts: Record<string, number> = {};
  for (const rows of found) {
    if (rows.environmentId !== environmentId || !isTheirs(rows.key)) continue;
    const place = placeOf(rows);
    counts[place] = (counts[place] ?? 0) + rows.rows;
  }
  for (const rows of shared) {
    const times = rows.environmentId === environmentId ? rows.keys.filter(isTheirs).length : 0;
    if (times > 1) counts[`clickhouse.${rows.table}`]! -= (times - 1) * rows.rows;
  }
  return counts;
}

/** What was found altogether: of what two looks both saw, an eraser that died in between included, the larger number. */
export function mergeCounts(one: Counts, other: Counts): Counts {
  const places = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...places].sort().map((place) => [place, Math.max(one[place] ?? 0, other[place] ?? 0)]));
}
