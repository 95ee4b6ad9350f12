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
  /** False during a drain. */
  accepting: () => boolean;
}

/** The checks of `/readyz`. Once known, keys outlast an outage of Redis. */
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
 * Checks that leave the gateway ready: without a writable Redis only consents and erasures fail. The metric is measured
 * at each scrape.
 */
export function createDegraded(
  people: Pick<AudiencePorts['people'], 'ready' | 'takesWrites'>,
  metrics: Pick<Metrics, 'collectedGauge'>,
): ReadinessChecks {
  watchWrites(metrics, () => people.takesWrites());
  return { consentsAndErasures: () => people.ready() };
}
