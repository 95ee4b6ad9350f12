import type { OutgoingRecord, StreamRecord } from '@playline/stream';

/** The record as it was, with where it came from and why it is here as headers: the same that block consumers write. */
export function toDeadLetter({ record, reason }: { record: StreamRecord; reason: string }): OutgoingRecord {
  const trace = record.headers.traceparent;
  return {
    topic: `${record.topic}.dead`,
    key: record.key,
    value: record.value ?? Buffer.alloc(0),
    headers: {
      ...(trace !== undefined && { traceparent: trace }),
      reason,
      step: 'link',
      'original-topic': record.topic,
      'original-partition': String(record.partition),
      'original-offset': String(record.offset),
      'original-timestamp': String(record.timestampMs),
    },
  };
}
