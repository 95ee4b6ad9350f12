import type { FoundRows } from '../rows.ts';

/** Rows that are left of erased people, by where they stand. No key: it is told to people. */
export interface Survivors extends Pick<FoundRows, 'table' | 'column' | 'as' | 'environmentId'> {
  readonly rows: number;
}

/** Adds up what was found of all people, in the order of the places. */
export function toSurvivors(found: readonly Survivors[]): Survivors[] {
  const sums = new Map<string, Survivors>();
  for (const { table, column, as, environmentId, rows } of found) {
    const name = `${table}.${column} ${as} ${environmentId}`;
    sums.set(name, { table, column, as, environmentId, rows: rows + (sums.get(name)?.rows ?? 0) });
  }
  return [...sums].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, sum]) => sum);
}
