import { PublicError } from '@playline/errors';
import { Deadlines } from '@playline/http';
import type { OutgoingRecord, Producer } from '@playline/stream';
import type { Hold } from './bytes-in-flight.ts';

/** Publishes the records of one request; resolves when all are acknowledged. */
export type Publish = (records: readonly OutgoingRecord[], hold: Hold) => Promise<void>;

export interface PublishOptions {
  producer: Pick<Producer, 'send'>;
  deadlineMs: number;
  onPublished?: (seconds: number) => void;
}

/**
 * Builds the only path to the brokers. Delivery guarantee: it resolves only after the brokers have acknowledged all
 * records. A fault or the deadline rejects with INTERNAL_SERVER_ERROR, and clients then send the same ids again.
 * The bytes stay counted until the producer settles, not until the deadline, because they stay in memory until then.
 */
export function createPublish({ producer, deadlineMs, onPublished = () => {} }: PublishOptions): Publish {
  const deadlines = new Deadlines();
  return (records, hold) =>
    new Promise((resolve, reject) => {
      const startedAt = performance.now();
      const fail = (cause: Error) => reject(new PublicError('INTERNAL_SERVER_ERROR', { cause }));
      const onLate = () => fail(new Error(`not acknowledged within ${deadlineMs} ms`));
      const deadline = deadlines.add(deadlineMs, onLate);
      const settle = (fault: Error | null) => {
        deadline.cancel();
        hold.release();
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
