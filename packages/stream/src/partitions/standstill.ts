import { type OwnedPartition, stopPartition } from './owned-partition.ts';
import type { Waits } from './ownership.ts';

/**
 * Half a minute first, because most often a migration is under way and will help. Then longer and longer, up to ten
 * minutes, because otherwise a person is needed. An attempt costs one refused insert, and the log keeps its records for
 * days.
 */
const STANDSTILL_WAITS: Waits = { minMs: 30_000, maxMs: 600_000 };

/** A partition that stands after a fault that waiting does not end. It tries again now and then, until it goes on. */
export class Standstill {
  readonly #owned: OwnedPartition;
  readonly #waits: Waits;
  #waitMs: number;
  #release: (() => void) | null = null;

  /** @param waits other than production's for tests only */
  constructor(owned: OwnedPartition, waits: Waits = STANDSTILL_WAITS) {
    this.#owned = owned;
    this.#waits = waits;
    this.#waitMs = waits.minMs;
  }

  /** Logs that the partition stands at `offset`, counts it once, and resolves when it is time to try again. */
  async wait(offset: number, error: unknown): Promise<void> {
    const release = stopPartition(this.#owned, offset, error);
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
