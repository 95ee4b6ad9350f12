import type { ReadinessChecks } from '@playline/http';
import type { Producer } from '@playline/stream';
import type { SchemaIdCache } from './schema-ids.ts';

export interface ReadinessParts {
  producer: Pick<Producer, 'ready'>;
  schemas: Pick<SchemaIdCache, 'current'>;
  store: { ready(): Promise<boolean> };
  /** False from the start of a drain. */
  accepting: () => boolean;
}

/**
 * Builds the answer to `/readyz`. The key store counts only until it has answered once: after that cached keys carry
 * ingest through an outage, and a gateway taken out of service for it would end just that.
 */
export function createReadiness(parts: ReadinessParts): ReadinessChecks {
  let keysSeen = false;
  return {
    accepting: parts.accepting,
    broker: () => parts.producer.ready(),
    schemas: () => parts.schemas.current() !== null,
    keys: async () => {
      keysSeen ||= await parts.store.ready();
      return keysSeen;
    },
  };
}
