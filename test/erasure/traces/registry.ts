import { type Clearing, REDIS_STORES, SYSTEM_STORES, TABLES, TOPIC_STORES } from '@playline/erasure';
import type { Trace } from './needle.ts';

const CLEARINGS = new Map<string, Clearing>([
  ...TABLES.map(({ name, clearing }) => [`table ${name}`, clearing] as const),
  ...SYSTEM_STORES.map(({ name, clearing }) => [`table system.${name}`, clearing] as const),
  ...TOPIC_STORES.map(({ name, clearing }) => [`topic ${name}`, clearing] as const),
  ...REDIS_STORES.map(({ name, clearing }) => [`redis ${name}`, clearing] as const),
]);

/** How data is removed from a store; undefined if the store is not registered. */
export const clearingOf = (location: string): Clearing['by'] | undefined => CLEARINGS.get(location)?.by;

/** Client strings may remain only in stores with a TTL. Keys may also remain in stores that keep data. */
const MAY_REMAIN: Record<Trace['kind'], readonly Clearing['by'][]> = { text: ['ttl'], key: ['ttl', 'kept'] };

/** Finds traces that the registry does not allow after an erasure. */
export function findForbidden(traces: readonly Trace[]): Trace[] {
  return traces.filter(({ location, kind }) => {
    const by = clearingOf(location);
    return by === undefined || !MAY_REMAIN[kind].includes(by);
  });
}
