import type { ActivityConstants } from './rows.ts';
import type { ActivityFilters } from './store.ts';

/** Everything. */
export const NO_FILTERS: ActivityFilters = {
  fromIndexedAt: null,
  toIndexedAt: null,
  contractAddress: null,
  type: null,
};

/** Whether a reader with these filters wants to see an activity. */
export function passesFilters(row: ActivityConstants, filters: ActivityFilters): boolean {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return (
    (fromIndexedAt === null || row.indexedAt >= fromIndexedAt) &&
    (toIndexedAt === null || row.indexedAt <= toIndexedAt) &&
    (contractAddress === null || row.contractAddress === contractAddress) &&
    (type === null || row.type === type)
  );
}
