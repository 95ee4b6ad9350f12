import type { LogReader } from '@playline/stream';

/** What the event writer has not stored yet, of all environments together: one writer stores for all. */
export interface WriterDelay {
  /** Messages that stand on the log and are not stored. */
  readonly waiting: number;
  /** When the oldest of them came to the log, in epoch milliseconds; null while nothing waits. */
  readonly oldestMs: number | null;
}

export interface WriterDelayParts {
  readonly log: Pick<LogReader, 'bounds' | 'committed' | 'read'>;
  /** Topic of messages, as it is called on the brokers. */
  readonly topic: string;
  /** Consumer group of the event writer: what it has committed is stored. */
  readonly writerGroup: string;
}

/** Asks how far the writer is behind: one record a partition is read, the first that is not stored. @throws Error of the brokers */
export async function readWriterDelay({ log, topic, writerGroup }: WriterDelayParts): Promise<WriterDelay> {
  const [bounds, committed] = await Promise.all([log.bounds(topic), log.committed(writerGroup, topic)]);
  const partitions = await Promise.all(
    bounds.map(async ({ partition, start, end }) => {
      const next = Math.max(start, committed.get(partition) ?? start);
      // Behind the last record there may be markers of transactions, which nobody stores.
      for await (const { timestampMs } of log.read({ topic, partition, start: next, end }))
        return { waiting: end - next, oldestMs: timestampMs };
      return null;
    }),
  );
  const behind = partitions.filter((each) => each !== null);
  return {
    waiting: behind.reduce((sum, { waiting }) => sum + waiting, 0),
    oldestMs:
      behind.length === 0
        ? null
        : behind
            .map(({ oldestMs }) => oldestMs)
            .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY),
  };
}
