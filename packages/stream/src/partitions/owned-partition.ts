import type { Logger } from '@playline/runtime';
import { Fenced, type LogPartition } from './log-partition.ts';
import type { Ownership, Waits } from './ownership.ts';
import type { Reports } from './partition-worker.ts';
import { retryLogOf } from './retry-log.ts';

/** A partition that is assigned to this process: what both kinds of workers commit to and report to. */
export interface OwnedPartition extends Reports {
  readonly log: LogPartition;
  readonly ownership: Ownership;
  /** Why it does not go on. */
  readonly blocker: Blocker;
}

export function createOwnedPartition(given: Omit<OwnedPartition, 'blocker'>): OwnedPartition {
  return { ...given, blocker: new Blocker({ at: given.log, logger: given.logger }) };
}

/**
 * Commits an offset, and repeats that while the coordinator does not answer or refuses: a missing grant may be given
 * later, and nothing is lost meanwhile. The log and the partition's hindrance say that it does not go on.
 * @throws Fenced when the partition belongs to another member, OwnershipOver when it is not assigned here any more
 */
export async function commitOffset(owned: OwnedPartition, offset: number, metadata: string): Promise<void> {
  const { log, ownership, metrics, blocker: hindrance } = owned;
  const trial = hindrance.beginStep(`offset ${offset} is not committed`);
  const commit = () => log.commit(offset, metadata);
  await ownership.retry(commit, (fault) => {
    if (fault instanceof Fenced) return false;
    metrics.retry(log.topic, 'commit');
    trial.failed(fault);
    return true;
  });
  trial.done();
}

/**
 * After a fault that waiting does not end: this partition stands at `offset`, and that is logged and counted. Other
 * partitions go on.
 * @returns a function to call when it goes on again; the end of the ownership does the same
 */
export function pausePartition(owned: OwnedPartition, offset: number, error: unknown): () => void {
  const { log, ownership, metrics, logger, blocker: hindrance } = owned;
  const { topic, partition } = log;
  metrics.stopped(topic, 1);
  hindrance.set('the partition has stopped', error);
  const release = () => {
    ownership.signal.removeEventListener('abort', release);
    hindrance.clear();
    metrics.stopped(topic, -1);
  };
  ownership.signal.addEventListener('abort', release, { once: true });
  logger?.error({ error, topic, partition, offset }, 'the partition has stopped');
  log.pause();
  return release;
}

/**
 * When a coordinator changes or a broker restarts, a few seconds pass, which nobody needs to know about. What lasts
 * longer, or what brokers call final (such as a missing grant), is reported as the reason why its partition does not go
 * on.
 */
const SHORT_FAULT_MS = 10_000;

interface BlockerOptions {
  readonly at: { readonly topic: string; readonly partition: number };
  readonly logger: Logger | undefined;
}

/** Clients of Kafka mark their faults: whether another attempt can help. */
const isFinal = (fault: unknown) => fault instanceof Error && (fault as { retriable?: boolean }).retriable === false;

/** Why a partition does not go on although it keeps trying: for readiness, and for operators. */
export class Blocker {
  readonly #options: BlockerOptions;
  #sentence: string | null = null;

  constructor(options: BlockerOptions) {
    this.#options = options;
  }

  /** The reason as a sentence; null while there is none. */
  get sentence(): string | null {
    return this.#sentence;
  }

  /**
   * Starts a step.
   * @param doing such as `offset 7 is not committed`
   */
  beginStep(doing: string): StepTrial {
    const { at, logger } = this.#options;
    const { topic, partition } = at;
    const startMs = performance.now();
    let isTold = false;
    return {
      failed: (error) => {
        retryLogOf(logger)?.report({ topic, partition, level: 'error', error }, doing);
        if (!isFinal(error) && performance.now() - startMs < SHORT_FAULT_MS) return;
        isTold = true;
        this.set(doing, error);
      },
      done: () => {
        if (!isTold) return;
        logger?.warn({ topic, partition }, 'what hindered the partition is over');
        this.clear();
      },
    };
  }

  /** The partition stands until `goOn`. */
  set(what: string, error: unknown): void {
    const { topic, partition } = this.#options.at;
    const reason = error instanceof Error ? error.message : String(error);
    this.#sentence = `${topic}/${partition}: ${what}: ${reason}`;
  }

  clear(): void {
    this.#sentence = null;
  }
}

/** One step that is tried until it succeeds. */
interface StepTrial {
  failed(fault: unknown): void;
  done(): void;
}

/**
 * Half a minute first, because most often a migration is under way and will help. Then longer and longer, up to ten
 * minutes, because otherwise a person is needed. An attempt costs one refused insert, and the log keeps its records for
 * days.
 */
const PAUSE_WAITS: Waits = { minMs: 30_000, maxMs: 600_000 };

/** A partition that stands after a fault that waiting does not end. It tries again now and then, until it goes on. */
export class PartitionPause {
  readonly #owned: OwnedPartition;
  readonly #waits: Waits;
  #waitMs: number;
  #release: (() => void) | null = null;

  /** @param waits other than production's for tests only */
  constructor(owned: OwnedPartition, waits: Waits = PAUSE_WAITS) {
    this.#owned = owned;
    this.#waits = waits;
    this.#waitMs = waits.minMs;
  }

  /** Logs that the partition stands at `offset`, counts it once, and resolves when it is time to try again. */
  async wait(offset: number, error: unknown): Promise<void> {
    const release = pausePartition(this.#owned, offset, error);
    this.#release?.();
    this.#release = release;
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(this.#waits.maxMs, waitMs * 2);
    await this.#owned.ownership.pause(waitMs);
  }

  /** The step that had failed has succeeded: the partition goes on. */
  end(offset: number): void {
    const { log, logger } = this.#owned;
    this.#release?.();
    this.#release = null;
    this.#waitMs = this.#waits.minMs;
    logger?.warn({ topic: log.topic, partition: log.partition, offset }, 'the partition that stood goes on');
  }
}
