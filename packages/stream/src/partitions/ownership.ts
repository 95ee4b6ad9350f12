import { setTimeout as delay } from 'node:timers/promises';

export class OwnershipOver extends Error {
  override readonly name = 'OwnershipOver';
}

/** First and longest wait between attempts. Waits double, plus a random share of up to a half. */
export interface Waits {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Short faults are retried almost immediately; a store that is down, twelve times per minute. */
const ATTEMPT_WAITS: Waits = { minMs: 100, maxMs: 5_000 };

/** The time from a partition's assignment to its revocation. Afterwards nothing may be written or committed. */
export class Ownership {
  readonly #controller = new AbortController();
  readonly #waits: Waits;

  /** @param waits set by tests only */
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

  /** @throws OwnershipOver */
  check(): void {
    if (this.hasEnded) throw new OwnershipOver();
  }

  /**
   * Retries `work` until it succeeds, with waits in between.
   * @param passes true for a temporary fault; any other fault is thrown
   * @throws OwnershipOver as soon as the ownership has ended, whatever the result of `work`
   */
  async retry<T>(work: () => Promise<T>, passes: (fault: unknown) => boolean): Promise<T> {
    const { minMs, maxMs } = this.#waits;
    for (let waitMs = minMs; ; waitMs = Math.min(maxMs, waitMs * 2)) {
      this.check();
      try {
        return await work();
      } catch (fault) {
        this.check();
        if (!passes(fault)) throw fault;
      }
      await this.pause(waitMs);
    }
  }

  /** Waits for `ms` plus a random share of up to a half. Resolves early when the ownership ends. */
  async pause(ms: number): Promise<void> {
    await delay(ms * (1 + Math.random() / 2), undefined, { signal: this.signal }).catch(() => {});
  }
}
