import type { Account, RateStatus } from './admit.ts';
import type { Clock } from './bucket.ts';

/** At most `calls` calls in `windowS` seconds, wherever the window begins. */
export interface WindowPolicy {
  /** Its name in the header fields: lower-case letters and hyphens. */
  readonly name: string;
  /** At least 1. */
  readonly calls: number;
  readonly windowS: number;
}

/**
 * The calls of one caller that are still inside the window. Other ways to count would not keep the limit as it is
 * stated. A token bucket would allow twice as many calls in one window: a full bucket and what is refilled meanwhile.
 * Fixed windows would do the same around their edges. Counts of slices of a window would refuse a caller who keeps to
 * the average. Remembering each call is exact, and costs eight bytes for each allowed call.
 */
export class CallWindow implements Account {
  readonly policy: WindowPolicy;
  readonly #now: Clock;
  /** Times of the calls, ascending. Those before `#first` have left the window. */
  #calls: number[] = [];
  #first = 0;

  constructor(policy: WindowPolicy, now: Clock) {
    this.policy = policy;
    this.#now = now;
  }

  status(): RateStatus {
    const now = this.#now();
    this.#forget(now);
    const used = this.#calls.length - this.#first;
    const remaining = Math.max(0, this.policy.calls - used);
    const allowed = remaining > 0;
    // A refused caller waits until enough calls have left the window for one more.
    const awaited = this.#calls[allowed ? this.#calls.length - 1 : this.#calls.length - this.policy.calls];
    const waitMs = awaited === undefined ? 0 : awaited + this.policy.windowS * 1000 - now;
    return { allowed, remaining, waitS: Math.ceil(waitMs / 1000) };
  }

  /** Remembers so many calls at this moment, whether they were allowed or not. */
  charge(calls: number): void {
    const now = this.#now();
    this.#forget(now);
    for (let call = 0; call < calls; call++) this.#calls.push(now);
  }

  /** True when no call is left in the window. The caller can then be forgotten without any effect. */
  get isEmpty(): boolean {
    this.#forget(this.#now());
    return this.#calls.length === 0;
  }

  /** A call leaves the window after the window's whole length. */
  #forget(now: number): void {
    const oldest = now - this.policy.windowS * 1000;
    while (this.#first < this.#calls.length && (this.#calls[this.#first] as number) <= oldest) this.#first++;
    // Copied only when most of the array is free, so that the cost of a call does not grow with the number of calls.
    if (this.#first * 2 <= this.#calls.length) return;
    this.#calls = this.#calls.slice(this.#first);
    this.#first = 0;
  }
}

export interface WindowLimiterOptions {
  /** Most callers remembered. */
  entriesMax?: number;
  now?: Clock;
}

/** Windows that only this process knows. */
export interface WindowLimiter {
  /** Callers in memory. */
  readonly size: number;
  /** The window of an id. If the id is remembered already, `policy` is ignored. */
  window(id: string, policy: WindowPolicy): CallWindow;
}

/**
 * Bounds memory when many callers make few calls each. When few callers make many calls, memory is bounded by how many
 * calls the process can answer in one window.
 */
const ENTRIES_MAX = 50_000;

/**
 * Callers are ordered by their last request. The first ones are dropped as soon as none of their calls is inside the
 * window, so memory follows the number of calls in one window. When there is no room, the first one is dropped in any
 * case.
 */
export function createWindowLimiter(options: WindowLimiterOptions = {}): WindowLimiter {
  const { entriesMax = ENTRIES_MAX, now = () => performance.now() } = options;
  const windows = new Map<string, CallWindow>();
  const makeRoom = () => {
    for (const [id, window] of windows) {
      if (windows.size < entriesMax && !window.isEmpty) return;
      windows.delete(id);
    }
  };
  return {
    get size() {
      return windows.size;
    },
    window: (id, policy) => {
      const window = windows.get(id) ?? new CallWindow(policy, now);
      windows.delete(id);
      makeRoom();
      windows.set(id, window);
      return window;
    },
  };
}
