import type { OutgoingRecord, Producer, StreamRecord } from '../ports.ts';
import { sendAll } from '../ports.ts';

/**
 * The topic beside `topic`, both by their names on the broker, that keeps its dead letters: records that could not be
 * processed, as they were.
 */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dead`;
}

/** A record that could not be processed, and why. */
export interface DeadLetter {
  readonly record: StreamRecord;
  readonly reason: string;
}

/** Reasons are cut here: long ones quote their input, which the dead letter contains anyway. */
const REASON_CHARACTERS_MAX = 500;
/** Headers under which a message's trace travels (W3C trace context). */
const TRACE_HEADERS = ['traceparent', 'tracestate'];

/**
 * Header of a mark in a dead-letter topic. Its value is the offset of a letter in the same partition that was replayed
 * or dropped.
 */
export const SETTLED_OFFSET = 'settled-offset';

/** Step of a letter that is a notice of the chain indexer about activities that no record has: it cannot be replayed. */
export const NOTICE_STEP = 'index';

/** The record as it was, key and value byte for byte. Headers say where it came from and why it is here. */
export function toDeadLetter({ record, reason }: DeadLetter, step: string): OutgoingRecord {
  const headers: Record<string, string | Buffer> = {};
  for (const name of TRACE_HEADERS) if (record.headers[name] !== undefined) headers[name] = record.headers[name];
  return {
    topic: deadLetterTopicOf(record.topic),
    key: record.key,
    value: record.value ?? Buffer.alloc(0),
    headers: {
      ...headers,
      reason: reason.slice(0, REASON_CHARACTERS_MAX),
      step,
      'original-topic': record.topic,
      'original-partition': String(record.partition),
      'original-offset': String(record.offset),
      'original-timestamp': String(record.timestampMs),
    },
  };
}

/** Resolves when every letter is acknowledged. @throws the producer's fault */
export function sendDeadLetters(
  producer: Pick<Producer, 'send'>,
  letters: readonly DeadLetter[],
  step: string,
): Promise<void> {
  return sendAll(
    producer,
    letters.map((letter) => toDeadLetter(letter, step)),
  );
}
