import type { Account, RateStatus } from './admit.ts';
import type { Clock } from './bucket.ts';

/** At most `calls` calls in any window of `windowS` seconds. */
export interface WindowPolicy {
  /** Policy name in the header fields. */
  readonly name: string;
  readonly calls: number;
  readonly windowS: number;
}

/**
 * One caller's calls within the window. A token bucket or fixed windows would allow twice the limit within one window,
 * so the time of each call is stored in eight bytes.
 */
export class CallWindow implements Account {
  readonly policy: WindowPolicy;
  readonly #now: Clock;
  /** Timestamps of calls in ascending order. Calls before index `#first` have left the window. */
  #calls: number[] = [];
  #first = 0;

  constructor(policy: WindowPolicy, now: Clock) {
    this.policy = policy;
    this.#now = now;
  }

  status(): RateStatus {
    const now = this.#now();
    this.#expire(now);
    const used = this.#calls.length - this.#first;
    const remaining = Math.max(0, this.policy.calls - used);
    const allowed = remaining > 0;
    // A refused caller must wait until enough calls have left the window.
    const awaited = this.#calls[allowed ? this.#calls.length - 1 : this.#calls.length - this.policy.calls];
    const waitMs = awaited === undefined ? 0 : awaited + this.policy.windowS * 1000 - now;
    return { allowed, remaining, waitS: Math.ceil(waitMs / 1000) };
  }

  /** Records calls even if they exceed the limit. */
  charge(calls: number): void {
    const now = this.#now();
    this.#expire(now);
    for (let call = 0; call < calls; call++) this.#calls.push(now);
  }

  get isEmpty(): boolean {
    this.#expire(this.#now());
    return this.#calls.length === 0;
  }

  #expire(now: number): void {
    const windowStart = now - this.policy.windowS * 1000;
    while (this.#first < this.#calls.length && (this.#calls[this.#first] as number) <= windowStart) this.#first++;
    // Compact the array only when more than half is unused.
    if (this.#first * 2 <= this.#calls.length) return;
    this.#calls = this.#calls.slice(this.#first);
    this.#first = 0;
  }
}

export interface WindowLimiterOptions {
  entriesMax?: number;
  now?: Clock;
}

export type WindowLimiter = ReturnType<typeof createWindowLimiter>;

const ENTRIES_MAX = 50_000;

/**
 * Tracks a window per caller, ordered by last request. The least recently active callers are dropped once their windows
 * are empty, or when the limiter is full.
 */
export function createWindowLimiter(options: WindowLimiterOptions = {}) {
  const { entriesMax = ENTRIES_MAX, now = () => performance.now() } = options;
  const windows = new Map<string, CallWindow>();
  const dropIdle = () => {
    for (const [id, window] of windows) {
      if (windows.size < entriesMax && !window.isEmpty) return;
      windows.delete(id);
    }
  };
  return {
    get size() {
      return windows.size;
    },
    /** Returns the window for an id. `policy` is used only to create the window. */
    window: (id: string, policy: WindowPolicy) => {
      const window = windows.get(id) ?? new CallWindow(policy, now);
      windows.delete(id);
      dropIdle();
      windows.set(id, window);
      return window;
    },
  };
}
