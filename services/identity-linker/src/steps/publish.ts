import { type OutgoingRecord, type Producer, RetryableFault } from '@playline/stream';

/** Publishes records in order and resolves when all are acknowledged. @throws RetryableFault when any is not */
export type Publish = (records: readonly OutgoingRecord[]) => Promise<void>;

export function createPublish(producer: Producer): Publish {
  return (records) =>
    new Promise((resolve, reject) => {
      if (records.length === 0) return resolve();
      producer.send(records, (cause) => {
        if (cause === null) resolve();
        else reject(new RetryableFault(`decisions were not acknowledged: ${cause.message}`, { cause }));
      });
    });
}
