import type { ReadinessChecks } from '@playline/http';
import { type Metrics, watchWrites } from '@playline/runtime';
import type { Producer } from '@playline/stream';
import type { AudiencePorts } from './audience-routes.ts';
import type { ClockWatch } from './clock-watch.ts';
import type { SchemaIdCache } from './schema-ids.ts';

export interface ReadinessParts {
  producer: Pick<Producer, 'ready'>;
  schemas: Pick<SchemaIdCache, 'current'>;
  keys: { ready(): Promise<boolean> };
  clock: Pick<ClockWatch, 'fault'>;
  /** False from the start of a drain. */
  accepting: () => boolean;
}

/**
 * Builds the answer to `/readyz`. The keys count only until they are known. After that ingest continues with the
 * known keys through an outage of Redis, which taking the gateway out of service would end.
 */
export function createReadiness(parts: ReadinessParts): ReadinessChecks {
  let keysSeen = false;
  return {
    accepting: parts.accepting,
    broker: () => parts.producer.ready(),
    schemas: () => parts.schemas.current() !== null,
    clock: () => parts.clock.fault() === null,
    keys: async () => {
      keysSeen ||= await parts.keys.ready();
      return keysSeen;
    },
  };
}

/**
 * Builds the checks that leave the gateway ready. A full, emptied or absent Redis fails consents and erasures, but
 * taking the gateway out of service would end ingest too. The metric is measured at every scrape, so it reports a Redis
 * that refuses writes before anybody changes a consent.
 */
export function createDegraded(
  people: Pick<AudiencePorts['people'], 'ready' | 'takesWrites'>,
  metrics: Pick<Metrics, 'collectedGauge'>,
): ReadinessChecks {
  watchWrites(metrics, () => people.takesWrites());
  return { consentsAndErasures: () => people.ready() };
}
