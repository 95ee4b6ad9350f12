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
export function createReadiness(parts: ReadinessParts): () => Promise<Record<string, boolean>> {
  let keysSeen = false;
  return async () => {
    const [broker, keys] = await Promise.all([
      parts.producer.ready().catch(() => false),
      keysSeen || parts.store.ready().catch(() => false),
    ]);
    keysSeen ||= keys;
    return { accepting: parts.accepting(), broker, schemas: parts.schemas.current() !== null, keys };
  };
}
