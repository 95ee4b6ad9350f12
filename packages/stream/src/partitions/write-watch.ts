/** A healthy insert takes tens of milliseconds; after this long a block is worth a line, and long before a lag alarm. */
const WRITE_SLOW_MS = 5_000;

/** Knows since when a block is being written, all its attempts together, and tells once when that is long. */
export class WriteWatch {
  #sinceMs: number | null = null;

  /** The first attempt by `performance.now()`; null while nothing is being written. */
  get sinceMs(): number | null {
    return this.#sinceMs;
  }

  /** Runs `write` and calls `onSlow` at most once, while it is still running. */
  async run(write: () => Promise<void>, onSlow: () => void): Promise<void> {
    this.#sinceMs = performance.now();
    // A watch alone must not keep a process from ending.
    const timer = setTimeout(onSlow, WRITE_SLOW_MS).unref();
    try {
      await write();
    } finally {
      clearTimeout(timer);
      this.#sinceMs = null;
    }
  }
}
