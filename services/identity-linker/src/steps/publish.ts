import { type OutgoingRecord, type Producer, RetryableFault, sendAll } from '@playline/stream';

/** Publishes records in order and resolves when all are acknowledged. @throws RetryableFault when any is not */
export type Publish = (records: readonly OutgoingRecord[]) => Promise<void>;

export function createPublish(producer: Producer): Publish {
  return (records) =>
    sendAll(producer, records).catch((cause: Error) => {
      throw new RetryableFault(`records were not acknowledged: ${cause.message}`, { cause });
    });
}

/** Records of one batch that are published while the batch is still being decided. */
export interface Publication {
  /** Adds the next records. They are published when those before them are acknowledged. */
  add(records: readonly OutgoingRecord[]): void;
  /** Resolves when all added records are acknowledged. @throws RetryableFault when any is not */
  done(): Promise<void>;
}

/**
 * Creates the publication of a batch. After records that were not acknowledged nothing more is published, because a log
 * with later decisions and without earlier ones would look complete.
 */
export function createPublication(publish: Publish): Publication {
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
    add(records) {
      for (const record of records) waiting.push(record);
      if (!isRunning) running = run();
    },
    async done() {
      await running;
      if (fault !== null) throw fault.cause;
    },
  };
}
