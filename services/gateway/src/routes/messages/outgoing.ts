import { frameRecord, identityLinkCodec } from '@playline/contracts';
import type { OutgoingRecord } from '@playline/stream';
import type { ReadBatch } from './read-batch.ts';

/** Names of the topics that a batch goes to. */
export interface OutgoingTopics {
  readonly messages: string;
  readonly links: string;
}

export interface OutgoingContext {
  readonly topics: OutgoingTopics;
  readonly environmentId: string;
  readonly traceparent: string;
  readonly linkSchemaId: number;
}

/**
 * Values of at least this size carry `traceparent` as a header; its 69 bytes are then at most a quarter of the value. On
 * shorter ones it would break the bound of `log-bytes.ts`: a batch of the shortest identifies would become more than three
 * times what was received. Every value has the trace id anyway.
 */
const TRACED_VALUE_BYTES_MIN = 276;
const NO_HEADERS = {};

/**
 * Everything one batch puts on the log: its messages, and a link fact for each identify and alias that links. A link
 * fact has its trace id in the value, and its message beside it.
 */
export function toOutgoing(batch: ReadBatch, context: OutgoingContext): OutgoingRecord[] {
  const headers = { traceparent: context.traceparent };
  const topic = context.topics.messages;
  const outgoing: OutgoingRecord[] = batch.records.map(({ key, value }) => {
    return { topic, key, value, headers: value.length < TRACED_VALUE_BYTES_MIN ? NO_HEADERS : headers };
  });
  for (const link of batch.links) {
    const value = frameRecord(context.linkSchemaId, identityLinkCodec.encode(link));
    outgoing.push({ topic: context.topics.links, key: Buffer.from(context.environmentId), value, headers: NO_HEADERS });
  }
  return outgoing;
}
