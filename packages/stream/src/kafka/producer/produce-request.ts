import { DynamicBuffer } from '@platformatic/dynamic-buffer';
import { Writer } from '../broker-client.ts';
import type { EncodedBatch } from './wire.ts';

const ACKS_ALL = -1;
/** How long a leader waits for its replicas. Shorter than the time-out of a request. */
const REPLICATION_TIMEOUT_MS = 4_000;

/**
 * A produce request of version 9 (the first flexible version, since Kafka 2.4; later ones only extend the answer):
 * transactional_id acks timeout_ms [name [index records TAGS] TAGS] TAGS. The bytes of the batches are not copied.
 */
export function toProduceRequest(batches: readonly EncodedBatch[]): Writer {
  const topics = new Map<string, EncodedBatch[]>();
  for (const batch of batches) {
    const same = topics.get(batch.topic);
    if (same === undefined) topics.set(batch.topic, [batch]);
    else same.push(batch);
  }
  const writer = Writer.create().appendString(null).appendInt16(ACKS_ALL).appendInt32(REPLICATION_TIMEOUT_MS);
  return writer
    .appendArray([...topics], (w, [topic, partitions]) => {
      w.appendString(topic).appendArray(partitions, (each, { partition, bytes }) => {
        each
          .appendInt32(partition)
          .appendUnsignedVarInt(bytes.length + 1)
          .appendFrom(new DynamicBuffer(bytes));
      });
    })
    .appendTaggedFields();
}
