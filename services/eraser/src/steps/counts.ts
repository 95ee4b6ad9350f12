import type { FoundRows, NotedRows } from '@playline/erasure';
import type { ErasedPerson } from './persons.ts';

/** Numbers by store and place: `clickhouse.events`, `clickhouse.events.anonymous_key`, `redis.i`. */
export type Counts = Readonly<Record<string, number>>;

/** Blanked rows are counted under their column, deleted rows under their table. */
export const placeOf = ({ table, column, as }: Pick<FoundRows, 'table' | 'column' | 'as'>): string =>
  as === 'own' ? `clickhouse.${table}` : `clickhouse.${table}.${column}`;

/**
 * Counts the rows that a sweep found of each person, each row once. A row that names one person twice, such as a link,
 * is reported twice and still counted once. A row about two persons counts for both.
 */
export function countRows(
  persons: readonly ErasedPerson[],
  { found, shared }: NotedRows,
): ReadonlyMap<ErasedPerson, Counts> {
  const personOf = indexPersons(persons);
  const counts = new Map(persons.map((person): [ErasedPerson, Record<string, number>] => [person, {}]));
  const add = (person: ErasedPerson, place: string, rows: number) => {
    const own = counts.get(person)!;
    own[place] = (own[place] ?? 0) + rows;
  };
  for (const rows of found) {
    const person = personOf(rows.environmentId, rows.key);
    if (person !== undefined) add(person, placeOf(rows), rows.rows);
  }
  for (const { environmentId, keys, table, rows } of shared)
    for (const [person, names] of Map.groupBy(keys, (key) => personOf(environmentId, key)))
      if (person !== undefined) add(person, placeOf({ table, column: '', as: 'own' }), -(names.length - 1) * rows);
  return counts;
}

/** Builds the look-up of the person of an identity. An identity belongs to one person. */
function indexPersons(
  persons: readonly ErasedPerson[],
): (environmentId: string, key: Buffer) => ErasedPerson | undefined {
  const nameOf = (environmentId: string, key: Buffer) => `${environmentId} ${key.toString('latin1')}`;
  const byKey = new Map(
    persons.flatMap((person) =>
      person.identities.map(({ environmentId, key }) => [nameOf(environmentId, key), person] as const),
    ),
  );
  return (environmentId, key) => byKey.get(nameOf(environmentId, key));
}

/** Merges two counts of the same rows, as after an eraser that died in between: the larger number of each place. */
export function mergeCounts(one: Counts, other: Counts): Counts {
  const places = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...places].sort().map((place) => [place, Math.max(one[place] ?? 0, other[place] ?? 0)]));
}
