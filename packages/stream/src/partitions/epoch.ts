import { setTimeout as delay } from 'node:timers/promises';

/** Thrown out of work whose partition is not ours any more. */
export class EpochOver extends Error {
  override readonly name = 'EpochOver';
}

/** First and longest wait between attempts; doubled in between, each with up to half of it at random. */
const WAIT_MIN_MS = 100;
const WAIT_MAX_MS = 5_000;

/** The time from a partition's assignment to its end here: nothing may be written or committed after it. */
export class Epoch {
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get over(): boolean {
    return this.#controller.signal.aborted;
  }

  end(): void {
    this.#controller.abort();
  }

  /** @throws EpochOver */
  check(): void {
    if (this.over) throw new EpochOver();
  }

  /**
   * Runs `work` until it succeeds, with waits in between. Random parts keep partitions and processes from returning to
   * a store all at once.
   * @param passes tells a fault that passes; any other is thrown
   * @throws EpochOver as soon as the epoch is over, whatever the work says
   */
  async retry<T>(work: () => Promise<T>, passes: (fault: unknown) => boolean): Promise<T> {
    for (let wait = WAIT_MIN_MS; ; wait = Math.min(WAIT_MAX_MS, wait * 2)) {
      this.check();
      try {
        return await work();
      } catch (fault) {
        this.check();
        if (!passes(fault)) throw fault;
      }
      const pause = wait * (1 + Math.random() / 2);
      await delay(pause, undefined, { signal: this.signal }).catch(() => {});
    }
  }
}
