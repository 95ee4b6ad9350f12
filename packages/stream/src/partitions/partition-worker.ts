import type { Logger } from '@playline/runtime';
import type { StreamRecord } from '../ports.ts';
import type { LogMark } from './log-mark.ts';
import type { BlockReading, StreamMetrics } from './stream-metrics.ts';

export interface PartitionWorker extends BlockReading {
  readonly next: number;
  /** The offset after all completed and committed work. */
  readonly done: number;
  /** `done`, or `next` if no record is waiting, because offsets without a record are never done. */
  readonly settled: number;
  readonly healthy: boolean;
  /** Why the partition makes no progress; null if it is not blocked. */
  readonly blocker: string | null;
  /** The last batch that was read; null if unknown. */
  readonly lastRead: LogMark | null;
  /**
   * Adds records from `next` on, without waiting. All records before `end` have been read or do not exist.
   * @param batches the log's batches that contain the records, including transaction markers
   */
  accept(records: readonly StreamRecord[], end: number, batches?: readonly LogMark[]): void;
  /** Finishes work that must not be left to the next owner, within `budgetMs`, then ends. */
  drain(budgetMs: number): Promise<void>;
  /** Ends the worker when the partition is revoked. Nothing is written or committed afterwards. */
  end(): void;
}

export function blockersOf(
  partitions: Iterable<{ readonly log: { topic: string; partition: number }; readonly worker: PartitionWorker }>,
): Map<string, string> {
  const blockers = new Map<string, string>();
  for (const { log, worker } of partitions)
    if (worker.blocker !== null) blockers.set(`${log.topic}/${log.partition}`, worker.blocker);
  return blockers;
}

export interface Reports {
  readonly logger: Logger | undefined;
  readonly metrics: StreamMetrics;
}
