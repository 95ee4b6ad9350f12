import { createMessageFieldsDecoder, FRAME_BYTES, frameRecord, identityLinkCodec } from '@playline/contracts';
import type { EncodedRecord } from '@playline/events';
import { toLinkFact } from '@playline/people';
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
 * From this size of a value on a message carries `traceparent` as a header: its 69 bytes are at most a quarter of the
 * value then. Every value has the trace id, and a batch of nothing but the shortest identifies would otherwise become
 * more than three times what was received.
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
  for (const place of batch.linking) {
    const value = linkValue(batch.records[place]!, context.linkSchemaId);
    if (value === null) continue;
    outgoing.push({ topic: context.topics.links, key: Buffer.from(context.environmentId), value, headers: NO_HEADERS });
  }
  return outgoing;
}

/** What a link fact is made of. */
const decodeLinkSource = createMessageFieldsDecoder([
  ...(['environmentId', 'messageId', 'type', 'eventTime', 'receivedAt', 'traceId'] as const),
  ...(['anonymousId', 'userId', 'identityType', 'fromId', 'fromType', 'toId', 'toType'] as const),
]);

/** Reads the link fact off the record itself, so that both ways of reading a batch give the same fact. */
function linkValue(record: EncodedRecord, schemaId: number): Buffer | null {
  const fact = toLinkFact(decodeLinkSource(record.value.subarray(FRAME_BYTES)));
  return fact === null ? null : frameRecord(schemaId, identityLinkCodec.encode(fact));
}
