import type { Logger } from '@playline/runtime';
import type { StreamRecord } from '../ports.ts';
import type { LogMark } from './log-mark.ts';
import type { BlockReading, StreamMetrics } from './stream-metrics.ts';

export interface PartitionWorker extends BlockReading {
  readonly next: number;
  /** The offset after everything that is done and committed. */
  readonly done: number;
  /** `done`, or `next` when no record waits for work, because offsets without a record are never done. */
  readonly settled: number;
  readonly healthy: boolean;
  /** Why it makes no progress; null when nothing blocks it. */
  readonly blocker: string | null;
  /** The last batch that it has read; null when that is unknown. */
  readonly lastRead: LogMark | null;
  /**
   * Adds records from `next` on, without waiting; everything before `end` has been read or does not exist.
   * @param batches the batches of the log that hold them, including transaction markers
   */
  accept(records: readonly StreamRecord[], end: number, batches?: readonly LogMark[]): void;
  /** Finishes what must be finished, within `budgetMs`, and ends. */
  drain(budgetMs: number): Promise<void>;
  /** The partition is no longer assigned here: nothing is written or committed after this. */
  end(): void;
}

export function blockersOf(
  partitions: Iterable<{ readonly log: { topic: string; partition: number }; readonly worker: PartitionWorker }>,
): Map<string, string> {
  const found = new Map<string, string>();
  for (const { log, worker } of partitions)
    if (worker.blocker !== null) found.set(`${log.topic}/${log.partition}`, worker.blocker);
  return found;
}

export interface Reports {
  readonly logger: Logger | undefined;
  readonly metrics: StreamMetrics;
}
