import { Fenced, type LogPartition } from './log-partition.ts';
import { Ownership, type Waits } from './ownership.ts';
import type { Reports } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';

/**
 * Retriable faults that last less than this time (a broker restart, a coordinator move) are not reported as a blocker.
 */
const SHORT_FAULT_MS = 10_000;
/** The wait doubles from half a minute, during which a migration may complete, up to ten minutes. */
const PAUSE_WAITS: Waits = { minMs: 30_000, maxMs: 600_000 };

export interface OwnedPartitionOptions extends Reports {
  readonly log: LogPartition;
  /** Shorter waits between attempts, and before a paused partition is retried, for tests. */
  readonly waits?: { readonly attempt: Waits; readonly pause: Waits } | undefined;
}

const isFatal = (error: unknown) => error instanceof Error && (error as { retriable?: boolean }).retriable === false;

/** A partition assigned to this process. Commits its offsets, and reports why it is blocked or paused. */
export class OwnedPartition {
  readonly ownership: Ownership;
  readonly #options: OwnedPartitionOptions;
  readonly #pauseWaits: Waits;
  #pauseWaitMs: number;
  #blocker: string | null = null;
  #endPause: (() => void) | null = null;

  constructor(options: OwnedPartitionOptions) {
    this.#options = options;
    this.ownership = new Ownership(options.waits?.attempt);
    this.#pauseWaits = options.waits?.pause ?? PAUSE_WAITS;
    this.#pauseWaitMs = this.#pauseWaits.minMs;
  }

  get blocker(): string | null {
    return this.#blocker;
  }

  /**
   * Commits an offset. Retries until the coordinator accepts the commit, because a missing grant may be added later.
   * @throws Fenced if the partition belongs to another member, OwnershipEnded if it was revoked
   */
  async commit(offset: number, metadata: string): Promise<void> {
    const { log } = this.#options;
    await this.retryUntilDone('commit', `offset ${offset} not committed`, () => log.commit(offset, metadata));
  }

  /**
   * Retries a step until it succeeds. A fault that lasts or is not retriable is reported as the blocker.
   * @throws Fenced, OwnershipEnded
   */
  async retryUntilDone(step: 'commit' | 'dead-letter', problem: string, work: () => Promise<void>): Promise<void> {
    const { log, logger, metrics } = this.#options;
    const { topic, partition } = log;
    const startMs = performance.now();
    let isReported = false;
    await this.ownership.retry(work, (error) => {
      if (error instanceof Fenced) return false;
      metrics.retry(topic, step);
      retryLogOf(logger)?.report({ topic, partition, level: 'error', error }, problem);
      if (isFatal(error) || performance.now() - startMs >= SHORT_FAULT_MS) {
        isReported = true;
        this.#block(problem, error);
      }
      return true;
    });
    if (!isReported) return;
    logger?.warn({ topic, partition }, 'partition unblocked');
    this.#blocker = null;
  }

  /** Pauses the partition at `offset` after a permanent fault, until `resume` or the end of the ownership. */
  pause(offset: number, error: unknown): void {
    const { log, metrics, logger } = this.#options;
    const { topic, partition } = log;
    this.#endPause?.();
    metrics.stopped(topic, 1);
    this.#block('partition paused', error);
    const { signal } = this.ownership;
    const end = () => {
      signal.removeEventListener('abort', end);
      this.#endPause = null;
      this.#blocker = null;
      metrics.stopped(topic, -1);
    };
    this.#endPause = end;
    signal.addEventListener('abort', end, { once: true });
    logger?.error({ error, topic, partition, offset }, 'partition paused');
    log.pause();
  }

  async pauseForRetry(offset: number, error: unknown): Promise<void> {
    this.pause(offset, error);
    const waitMs = this.#pauseWaitMs;
    this.#pauseWaitMs = Math.min(this.#pauseWaits.maxMs, waitMs * 2);
    await this.ownership.pause(waitMs);
  }

  /** Continues at `offset` after the failed work has succeeded. */
  resume(offset: number): void {
    const { log, logger } = this.#options;
    this.#endPause?.();
    this.#pauseWaitMs = this.#pauseWaits.minMs;
    logger?.warn({ topic: log.topic, partition: log.partition, offset }, 'partition resumed');
  }

  #block(problem: string, error: unknown): void {
    const { topic, partition } = this.#options.log;
    this.#blocker = `${topic}/${partition}: ${problem}: ${error instanceof Error ? error.message : String(error)}`;
  }
}
