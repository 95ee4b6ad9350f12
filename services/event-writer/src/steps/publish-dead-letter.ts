import type { Producer, StreamRecord } from '@playline/stream';

export type PublishDeadLetter = (record: StreamRecord, reason: string) => Promise<void>;

/** As the stream cuts reasons: the input stands in the record. */
const REASON_CHARACTERS_MAX = 500;

/**
 * Creates the step that keeps a record which turned out unreadable only when its block was written. Same topic and
 * headers as the stream's own dead letters, step `write` instead of `transform`. Resolves when it is acknowledged.
 */
export function createPublishDeadLetter(producer: Producer): PublishDeadLetter {
  return (record, reason) =>
    new Promise((resolve, reject) => {
      const headers: Record<string, string | Buffer> = {
        reason: reason.slice(0, REASON_CHARACTERS_MAX),
        step: 'write',
        'original-topic': record.topic,
        'original-partition': String(record.partition),
        'original-offset': String(record.offset),
        'original-timestamp': String(record.timestampMs),
      };
      for (const name of ['traceparent', 'tracestate']) {
        const value = record.headers[name];
        if (value !== undefined) headers[name] = value;
      }
      const { key, value } = record;
      producer.send([{ topic: `${record.topic}.dead`, key, value: value ?? Buffer.alloc(0), headers }], (fault) =>
        fault === null ? resolve() : reject(fault),
      );
    });
}
