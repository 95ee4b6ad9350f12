import { type OutgoingRecord, type Producer, RetryableFault, sendAll } from '@playline/stream';

/** Resolves when all records are acknowledged. @throws RetryableFault if a record is not acknowledged */
export type Publish = (records: readonly OutgoingRecord[]) => Promise<void>;

export function createPublish(producer: Producer): Publish {
  return (records) =>
    sendAll(producer, records).catch((cause: Error) => {
      throw new RetryableFault(`records were not acknowledged: ${cause.message}`, { cause });
    });
}

/**
 * Publishes a batch's records while the batch is still being decided. After a fault, nothing more is published, because
 * the log would appear complete although earlier decisions are missing.
 */
export function createPublication(publish: Publish) {
  let waiting: OutgoingRecord[] = [];
  let fault: { cause: unknown } | null = null;
  let isRunning = false;
  let running = Promise.resolve();
  const run = async () => {
    isRunning = true;
    while (waiting.length > 0 && fault === null) {
      const records = waiting;
      waiting = [];
      await publish(records).catch((cause: unknown) => {
        fault = { cause };
      });
    }
    isRunning = false;
  };
  return {
    add(records: readonly OutgoingRecord[]): void {
      for (const record of records) waiting.push(record);
      if (!isRunning) running = run();
    },
    /** Resolves when all records are acknowledged. @throws RetryableFault if a record is not acknowledged */
    async done(): Promise<void> {
      await running;
      if (fault !== null) throw fault.cause;
    },
  };
}
