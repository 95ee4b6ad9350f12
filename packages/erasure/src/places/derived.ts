import type { DerivedTable } from './place.ts';

const WITH_ROW = 'goes with the row';

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
    },
  },
];
