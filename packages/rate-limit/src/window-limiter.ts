import type { Account } from './admit.ts';
import type { Clock } from './bucket.ts';
import type { Standing } from './policy.ts';

/** At most `calls` calls in `windowS` seconds, wherever the window begins. */
export interface WindowPolicy {
  /** Its name in the header fields: lower-case letters and hyphens. */
  readonly name: string;
  /** At least 1. */
  readonly calls: number;
  readonly windowS: number;
}

/**
 * The calls of one caller that are still in the window. A token bucket would let in twice as many in one window, a full
 * bucket and what comes back meanwhile; counts of fixed windows the same around an edge; counts of slices of a window
 * would refuse a caller who keeps to the average. Remembering the calls themselves holds the limit as it is said, and
 * costs eight bytes for each call that was let in.
 */
export class CallWindow implements Account {
  readonly policy: WindowPolicy;
  readonly #now: Clock;
  /** Moments of calls, ascending; those in front of `#first` have left the window. */
  #calls: number[] = [];
  #first = 0;

  constructor(policy: WindowPolicy, now: Clock) {
    this.policy = policy;
    this.#now = now;
  }

  standing(): Standing {
    const now = this.#now();
    this.#forget(now);
    const used = this.#calls.length - this.#first;
    const remaining = Math.max(0, this.policy.calls - used);
    const allowed = remaining > 0;
    // Whoever is refused waits until so many have left the window that there is room for one.
    const awaited = this.#calls[allowed ? this.#calls.length - 1 : this.#calls.length - this.policy.calls];
    const waitMs = awaited === undefined ? 0 : awaited + this.policy.windowS * 1000 - now;
    return { allowed, remaining, waitS: Math.ceil(waitMs / 1000) };
  }

  /** Remembers so many calls of this moment, whether they were allowed or not. */
  charge(calls: number): void {
    const now = this.#now();
    this.#forget(now);
    for (let call = 0; call < calls; call++) this.#calls.push(now);
  }

  /** True when no call is left in the window: forgetting the caller then changes nothing. */
  get isEmpty(): boolean {
    this.#forget(this.#now());
    return this.#calls.length === 0;
  }

  /** A call leaves the window when its whole length has passed since. */
  #forget(now: number): void {
    const oldest = now - this.policy.windowS * 1000;
    while (this.#first < this.#calls.length && (this.#calls[this.#first] as number) <= oldest) this.#first++;
    // Moved only when most of it is free, so that a call costs the same however many there are.
    if (this.#first * 2 <= this.#calls.length) return;
    this.#calls = this.#calls.slice(this.#first);
    this.#first = 0;
  }
}

export interface WindowLimiterOptions {
  /** Callers remembered at most. */
  entriesMax?: number;
  now?: Clock;
}

/** Windows of this process alone. */
export interface WindowLimiter {
  /** Callers in memory. */
  readonly size: number;
  /** The window of an id; a policy given later for an id that is remembered is ignored. */
  window(id: string, policy: WindowPolicy): CallWindow;
}

/** Bounds memory with callers of few calls each; with many calls what the process can answer in a window bounds it. */
const ENTRIES_MAX = 50_000;

/**
 * Callers stand in the order in which they were last asked for. Those in front go as soon as none of their calls
 * counts any more, so what is held follows the calls of one window, and the first of all when there is no room.
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
