/** First distance between two lines about the same attempts; doubled up to the last. */
const DISTANCE_MIN_MS = 1_000;
/** Six lines an hour: enough for whoever looks, and a night of them can still be read. */
const DISTANCE_MAX_MS = 600_000;

/** Decides when attempts that fail again and again are told: the first at once, then at growing distances. */
export class RetryNotice {
  #attempts = 0;
  #sinceMs = 0;
  #dueMs = 0;
  #distanceMs = DISTANCE_MIN_MS;

  /** Counts a failed attempt. @returns how many there were and for how long, when it is time for a line; else null */
  next(): { attempts: number; forSeconds: number } | null {
    const nowMs = performance.now();
    if (this.#attempts++ === 0) this.#sinceMs = nowMs;
    else if (nowMs < this.#dueMs) return null;
    this.#dueMs = nowMs + this.#distanceMs;
    this.#distanceMs = Math.min(DISTANCE_MAX_MS, this.#distanceMs * 2);
    return { attempts: this.#attempts, forSeconds: Math.round((nowMs - this.#sinceMs) / 1_000) };
  }
}
