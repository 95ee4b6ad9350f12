import { setTimeout as delay } from 'node:timers/promises';

export class OwnershipEnded extends Error {
  override readonly name = 'OwnershipEnded';
}

/** Minimum and maximum wait between attempts. Waits double, plus a random jitter of up to half the wait. */
export interface Waits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Short faults are retried almost immediately, and an unavailable store twelve times per minute. */
const ATTEMPT_WAITS: Waits = { minMs: 100, maxMs: 5_000 };

/** The time from a partition's assignment to its revocation. Afterwards nothing may be written or committed. */
export class Ownership {
  readonly #controller = new AbortController();
  readonly #waits: Waits;

  /** @param waits set only by tests */
  constructor(waits: Waits = ATTEMPT_WAITS) {
    this.#waits = waits;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasEnded(): boolean {
    return this.#controller.signal.aborted;
  }

  end(): void {
    this.#controller.abort();
  }

  /** @throws OwnershipEnded */
  check(): void {
    if (this.hasEnded) throw new OwnershipEnded();
  }

  /**
   * Retries `work` until it succeeds.
   * @param isTemporary returns true for a temporary fault; any other fault is thrown
   * @throws OwnershipEnded as soon as the ownership has ended, regardless of the result of `work`
   */
  async retry<T>(work: () => Promise<T>, isTemporary: (fault: unknown) => boolean): Promise<T> {
    const { minMs, maxMs } = this.#waits;
    for (let waitMs = minMs; ; waitMs = Math.min(maxMs, waitMs * 2)) {
      this.check();
      try {
        return await work();
      } catch (fault) {
        this.check();
        if (!isTemporary(fault)) throw fault;
      }
      await this.pause(waitMs);
    }
  }

  /** Waits for `ms` plus a random jitter of up to half this time. Resolves early if the ownership ends. */
  async pause(ms: number): Promise<void> {
    await delay(ms * (1 + Math.random() / 2), undefined, { signal: this.signal }).catch(() => {});
  }
}
