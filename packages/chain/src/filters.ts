import type { ActivityConstants } from './rows.ts';
import type { ActivityFilters } from './store.ts';

/** Filters that every activity passes. */
export const NO_FILTERS: ActivityFilters = {
  fromIndexedAt: null,
  toIndexedAt: null,
  contractAddress: null,
  type: null,
};

/** Whether an activity passes these filters. */
export function passesFilters(row: ActivityConstants, filters: ActivityFilters): boolean {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return (
    (fromIndexedAt === null || row.indexedAt >= fromIndexedAt) &&
    (toIndexedAt === null || row.indexedAt <= toIndexedAt) &&
    (contractAddress === null || row.contractAddress === contractAddress) &&
    (type === null || row.type === type)
  );
}
