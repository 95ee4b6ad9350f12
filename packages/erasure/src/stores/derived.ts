import type { DerivedTable } from './store.ts';
import { WITH_ROW } from './store.ts';

/** Tables that follow from events, and are kept in step with them by materialized views. */
export const DERIVED_TABLES: readonly DerivedTable[] = [
  {
    name: 'identity_days',
    clearing: {
      by: 'derived',
      view: 'derived_identity_days',
      keys: ['environment_id', 'identity_key', 'day', 'event_name'],
      values: [],
    },
    columns: {
      environment_id: 'names an environment',
      identity_key: 'whose rows are deleted and derived again',
      day: WITH_ROW,
      event_name: WITH_ROW,
      test: WITH_ROW,
    },
  },
  {
    name: 'identities',
    clearing: {
      by: 'derived',
      view: 'derived_identities',
      keys: ['environment_id', 'identity_key'],
      // Without last_active_at, in which two copies of a message may differ.
      values: ['min(first_seen_at)', 'max(last_seen_at)', 'argMinMerge(first_touch)', 'argMaxIfMerge(latest_traits)'],
    },
    columns: {
      environment_id: 'names an environment',
      identity_key: 'whose rows are deleted and derived again',
      test: WITH_ROW,
      first_seen_at: WITH_ROW,
      last_seen_at: WITH_ROW,
      first_touch: WITH_ROW,
      latest_traits: WITH_ROW,
      last_active_at: WITH_ROW,
    },
  },
];

/**
 * A query of the rows that only one of a derived table and its events has. `sides` is 1 for a row that no event says, 2
 * for one that is missing.
 * @param from what the rows of the table, and those of the events, are selected from
 */
export function differencesOf(
  { clearing: { keys, values } }: DerivedTable,
  from: { readonly stored: string; readonly derived: string },
): string {
  const told = (source: string, side: 1 | 2) =>
    `SELECT ${[...keys, ...values.map((value, index) => `${value} AS value_${index}`)].join(', ')}, ${side} AS side
     FROM ${source} GROUP BY ${keys.join(', ')}`;
  const named = [...keys, ...values.map((_, index) => `value_${index}`)].join(', ');
  return `SELECT ${named}, groupBitOr(side) AS sides
    FROM (${told(from.stored, 1)} UNION ALL ${told(from.derived, 2)}) GROUP BY ${named} HAVING sides != 3`;
}
