import { PublicError } from '@playline/errors';
import { Deadlines, type Reservation } from '@playline/http';
import type { OutgoingRecord, Producer } from '@playline/stream';

/** Resolves when all records are acknowledged. */
export type Publish = (records: readonly OutgoingRecord[], reservation: Reservation) => Promise<void>;

/**
 * The only path of messages to the brokers. Rejects with INTERNAL_SERVER_ERROR on a fault or at the deadline. The bytes
 * stay reserved until the producer settles, because they stay in memory until then.
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
      const onLate = () => fail(new Error(`not acknowledged within ${deadlineMs} ms`));
      const deadline = deadlines.add(deadlineMs, onLate);
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

/** Name and value have a length byte each. */
const HEADER_FRAME_BYTES = 2;

type Headers = OutgoingRecord['headers'];

function headerBytesOf(headers: Headers): number {
  let bytes = 0;
  for (const name in headers) bytes += HEADER_FRAME_BYTES + name.length + headers[name]!.length;
  return bytes;
}

/** Bytes of the records in memory until they are acknowledged. */
export function bytesOf(records: readonly OutgoingRecord[]): number {
  let bytes = 0;
  let headers: Headers;
  let headerBytes = 0;
  for (const record of records) {
    // Records of one request share their headers.
    if (record.headers !== headers) {
      headers = record.headers;
      headerBytes = headerBytesOf(headers);
    }
    bytes += record.value.length + (record.key?.length ?? 0) + headerBytes;
  }
  return bytes;
}
