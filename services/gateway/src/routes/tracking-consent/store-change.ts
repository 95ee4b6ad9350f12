import { type ConsentRecord, consentCodec, frameRecord, TOPICS } from '@playline/contracts';
import type { ApplyOutcome, ConsentStore } from '@playline/people';
import type { Producer } from '@playline/stream';

export interface StoreChangeParts {
  producer: Pick<Producer, 'sendPlaced'>;
  consents: Pick<ConsentStore, 'apply'>;
  /** @throws PublicError INTERNAL_SERVER_ERROR while it is not known */
  schemaId: () => number;
  topicPrefix: string;
}

/** Puts one change on the log, then into the store at the place it has there. */
export type StoreChange = (change: ConsentRecord, traceparent: string) => Promise<ApplyOutcome>;

/**
 * Builds the one way of a change. The guarantee of the 204: it resolves after every in-sync replica has the change and
 * the store answers with it, or with one at a later place. The log comes first, so a change that only the store lacks
 * is mended by sending it again or by a rebuild; the reverse would be an answer that nothing remembers.
 */
export function createStoreChange({ producer, consents, schemaId, topicPrefix }: StoreChangeParts): StoreChange {
  const topic = topicPrefix + TOPICS.consents.name;
  return async (change, traceparent) => {
    const { environmentId, identityKey, status, receivedAt } = change;
    const { partition, offset, loggedAtMs } = await producer.sendPlaced({
      topic,
      key: Buffer.concat([Buffer.from(environmentId), identityKey]),
      value: frameRecord(schemaId(), consentCodec.encode(change)),
      headers: { traceparent },
    });
    const place = { partition, offset, loggedAtMs: loggedAtMs ?? receivedAt };
    return await consents.apply({ environmentId, identityKey, status, receivedAt, place });
  };
}
