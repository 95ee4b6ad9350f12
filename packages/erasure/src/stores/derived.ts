/** Tables that materialized views derive from events. */
import { columnsOf, type DerivedTable } from './store.ts';

const ENVIRONMENT = 'identifies an environment';
const OWNER = 'identity whose rows are deleted and rederived';
const WITH_ROW = 'deleted with the row';

export const DERIVED_TABLES: readonly DerivedTable[] = [
  {
    name: 'identity_days',
    clearing: {
      by: 'derived',
      view: 'derived_identity_days',
      keys: ['environment_id', 'identity_key', 'day', 'event_name'],
      values: [],
    },
    columns: columnsOf({ [ENVIRONMENT]: 'environment_id', [OWNER]: 'identity_key', [WITH_ROW]: 'day event_name test' }),
  },
  {
    name: 'identities',
    clearing: {
      by: 'derived',
      view: 'derived_identities',
      keys: ['environment_id', 'identity_key'],
      // Excludes last_active_at, which may differ between duplicates of a message.
      values: ['min(first_seen_at)', 'max(last_seen_at)', 'max(first_touch)', 'max(latest_traits)', 'max(user_hash)'],
    },
    columns: columnsOf({
      [ENVIRONMENT]: 'environment_id',
      [OWNER]: 'identity_key',
      [WITH_ROW]: 'test first_seen_at last_seen_at first_touch latest_traits last_active_at user_hash',
    }),
  },
  {
    name: 'session_days',
    clearing: {
      by: 'derived',
      view: 'derived_session_days',
      keys: ['environment_id', 'identity_key', 'day', 'session_id', 'surface'],
      values: [
        'min(first_at)',
        'max(last_at)',
        'max(lead_ms)',
        'max(entry)',
        'length(groupUniqArrayArray(100000)(messages))',
      ],
    },
    columns: columnsOf({
      [ENVIRONMENT]: 'environment_id',
      [OWNER]: 'identity_key',
      [WITH_ROW]: 'day session_id surface first_at last_at lead_ms entry messages',
    }),
  },
];

/**
 * SQL that finds differences between the derived table and the events. `sides` is 1 for a row without events and 2 for
 * a missing row.
 * @param from the FROM clauses
 */
export function differencesOf(
  { clearing: { keys, values } }: DerivedTable,
  from: { readonly stored: string; readonly derived: string },
): string {
  const rowsOf = (source: string, side: 1 | 2) =>
    `SELECT ${[...keys, ...values.map((value, index) => `${value} AS value_${index}`)].join(', ')}, ${side} AS side
     FROM ${source} GROUP BY ${keys.join(', ')}`;
  const columns = [...keys, ...values.map((_, index) => `value_${index}`)].join(', ');
  return `SELECT ${columns}, groupBitOr(side) AS sides
    FROM (${rowsOf(from.stored, 1)} UNION ALL ${rowsOf(from.derived, 2)}) GROUP BY ${columns} HAVING sides != 3`;
}
