import { type Clearing, REDIS_PLACES, SYSTEM_PLACES, TABLES, TOPIC_PLACES } from '@playline/erasure';
import type { Trace } from './needle.ts';

const CLEARINGS = new Map<string, Clearing>([
  ...TABLES.map(({ name, clearing }) => [`table ${name}`, clearing] as const),
  ...SYSTEM_PLACES.map(({ name, clearing }) => [`table system.${name}`, clearing] as const),
  ...TOPIC_PLACES.map(({ name, clearing }) => [`topic ${name}`, clearing] as const),
  ...REDIS_PLACES.map(({ name, clearing }) => [`redis ${name}`, clearing] as const),
]);

/** How the registry of places says that a place is cleared; undefined when it does not know the place. */
export const clearingOf = (place: string): Clearing['by'] | undefined => CLEARINGS.get(place)?.by;

/** Texts go from everywhere but where they go by themselves; what is kept on purpose is keyed hashes. */
const MAY_STAY: Record<Trace['kind'], readonly Clearing['by'][]> = { text: ['ttl'], key: ['ttl', 'kept'] };

/** Traces after an erasure that the registry does not allow. */
export function findForbidden(traces: readonly Trace[]): Trace[] {
  return traces.filter(({ place, kind }) => {
    const by = clearingOf(place);
    return by === undefined || !MAY_STAY[kind].includes(by);
  });
}
