/** Dead letters: records that could not be processed and are stored unchanged in `<topic>.dead`. */
import type { OutgoingRecord, Producer, StreamRecord } from '../ports.ts';
import { sendAll } from '../ports.ts';

export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dead`;
}

export interface DeadLetter {
  readonly record: StreamRecord;
  readonly reason: string;
}

/** Long reasons quote the record, which the dead letter contains anyway. */
const REASON_CHARACTERS_MAX = 500;

/** Header of a marker in a dead-letter topic: the offset of a replayed or dropped dead letter in the same partition. */
export const SETTLED_OFFSET = 'settled-offset';

/** The `step` header of chain indexer notices about activities that have no record. Notices cannot be replayed. */
export const NOTICE_STEP = 'index';

/** Returns the headers of the W3C trace context, which dead letters and replays copy. */
export function traceHeadersOf({ headers }: Pick<StreamRecord, 'headers'>): Record<string, string | Buffer> {
  const found: Record<string, string | Buffer> = {};
  for (const name of ['traceparent', 'tracestate']) if (headers[name] !== undefined) found[name] = headers[name];
  return found;
}

/** Copies key and value unchanged. The headers contain the origin and the reason. */
export function toDeadLetter({ record, reason }: DeadLetter, step: string): OutgoingRecord {
  return {
    topic: deadLetterTopicOf(record.topic),
    key: record.key,
    value: record.value ?? Buffer.alloc(0),
    headers: {
      ...traceHeadersOf(record),
      reason: reason.slice(0, REASON_CHARACTERS_MAX),
      step,
      'original-topic': record.topic,
      'original-partition': String(record.partition),
      'original-offset': String(record.offset),
      'original-timestamp': String(record.timestampMs),
    },
  };
}

/** Publishes dead letters. Resolves when all of them are acknowledged. @throws the producer's fault */
export function sendDeadLetters(
  producer: Pick<Producer, 'send'>,
  deadLetters: readonly DeadLetter[],
  step: string,
): Promise<void> {
  return sendAll(
    producer,
    deadLetters.map((deadLetter) => toDeadLetter(deadLetter, step)),
  );
}
