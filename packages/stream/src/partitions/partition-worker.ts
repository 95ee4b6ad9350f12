import type { Logger } from '@playline/runtime';
import type { StreamRecord } from '../ports.ts';
import type { LogMark } from './log-mark.ts';
import type { BlockReading, StreamMetrics } from './stream-metrics.ts';

/** What a consumer runs for each partition that is assigned to it. */
export interface PartitionWorker extends BlockReading {
  /** The offset to read next. */
  readonly next: number;
  /** The offset after everything that is done and committed. */
  readonly done: number;
  /**
   * `done`, or `next` when no record waits for work: offsets without a record are never done, but nobody waits for
   * them.
   */
  readonly settled: number;
  /**
   * False after a fault that waiting does not end. The partition stands; it is tried again now and then, and when it is
   * assigned again.
   */
  readonly healthy: boolean;
  /** Why it does not go on although it keeps trying, as a sentence; null while there is no reason. */
  readonly blocker: string | null;
  /** The last batch that it has taken; null when it has taken none and does not know the batch before. */
  readonly lastRead: LogMark | null;
  /**
   * Takes records from `next` on, without waiting; everything before `end` has been read or does not exist.
   * @param batches what the log keeps them in, markers of transactions among them: commits name them
   */
  accept(records: readonly StreamRecord[], end: number, batches?: readonly LogMark[]): void;
  /** Finishes what must be finished, within `budgetMs`, then ends. */
  drain(budgetMs: number): Promise<void>;
  /** The partition is not assigned here any more: after this nothing is written or committed. */
  end(): void;
}

/** Why partitions stand or do not go on, by `topic/partition`; empty when all work. */
export function blockersOf(
  partitions: Iterable<{ readonly log: { topic: string; partition: number }; readonly worker: PartitionWorker }>,
): Map<string, string> {
  const found = new Map<string, string>();
  for (const { log, worker } of partitions)
    if (worker.blocker !== null) found.set(`${log.topic}/${log.partition}`, worker.blocker);
  return found;
}

/** What every worker reports to. */
export interface Reports {
  readonly logger: Logger | undefined;
  readonly metrics: StreamMetrics;
}
