import { PublicError } from '@playline/errors';
import { Deadlines, type Reservation } from '@playline/http';
import type { OutgoingRecord, Producer } from '@playline/stream';

/** Resolves when the brokers have acknowledged all records. */
export type Publish = (records: readonly OutgoingRecord[], reservation: Reservation) => Promise<void>;

/**
 * Creates the function that sends all messages to the brokers. The promise rejects with INTERNAL_SERVER_ERROR if the
 * send fails or the deadline passes. The reservation is released when the producer settles and the memory is free.
 */
export function createPublish(options: {
  producer: Pick<Producer, 'send'>;
  deadlineMs: number;
  onPublished?: (seconds: number) => void;
}): Publish {
  const { producer, deadlineMs, onPublished = () => {} } = options;
  const deadlines = new Deadlines();
  return (records, reservation) =>
    new Promise((resolve, reject) => {
      const startedAt = performance.now();
      const fail = (cause: Error) => reject(new PublicError('INTERNAL_SERVER_ERROR', { cause }));
      const onTimeout = () => fail(new Error(`not acknowledged within ${deadlineMs} ms`));
      const deadline = deadlines.add(deadlineMs, onTimeout);
      const settle = (fault: Error | null) => {
        deadline.cancel();
        reservation.release();
        if (fault !== null) return fail(fault);
        onPublished((performance.now() - startedAt) / 1000);
        resolve();
      };
      try {
        producer.send(records, settle);
      } catch (error) {
        settle(error as Error);
      }
    });
}

/** One length byte each for the name and the value. */
const HEADER_FRAME_BYTES = 2;

type Headers = OutgoingRecord['headers'];

function headerBytesOf(headers: Headers): number {
  let bytes = 0;
  for (const name in headers) bytes += HEADER_FRAME_BYTES + name.length + headers[name]!.length;
  return bytes;
}

/** Returns the size of the records in memory. */
export function bytesOf(records: readonly OutgoingRecord[]): number {
  let bytes = 0;
  let headers: Headers;
  let headerBytes = 0;
  for (const record of records) {
    // All records of a request have the same headers object.
    if (record.headers !== headers) {
      headers = record.headers;
      headerBytes = headerBytesOf(headers);
    }
    bytes += record.value.length + (record.key?.length ?? 0) + headerBytes;
  }
  return bytes;
}
