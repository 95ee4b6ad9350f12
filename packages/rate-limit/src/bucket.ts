import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, toRateStatus, unitMs } from './admit.ts';

/** Monotonic milliseconds. */
export type Clock = () => number;

/**
 * A token bucket that is stored as one number: the moment at which it is full again (generic cell rate algorithm). Its
 * balance may fall below zero, because the cost of a request is known only after the request was allowed.
 */
export class Bucket {
  readonly policy: RatePolicy;
  readonly #now: Clock;
  #fullAt = 0;

  constructor(policy: RatePolicy, now: Clock) {
    this.policy = policy;
    this.#now = now;
  }

  status(): RateStatus {
    return toRateStatus(this.policy, Math.max(0, this.#fullAt - this.#now()));
  }

  /**
   * Takes units out, also below zero. A negative number gives units back.
   * @throws RangeError when `units` is not a finite number: it would spoil the bucket for ever, here and where it is
   * shared
   */
  charge(units: number): void {
    if (!Number.isFinite(units)) throw new RangeError(`a bucket cannot be charged ${units} units`);
    this.#fullAt = Math.max(this.#fullAt, this.#now()) + units * unitMs(this.policy);
  }

  /** Replaces what was known of the bucket: it will be full after this time. */
  setBacklog(backlogMs: number): void {
    this.#fullAt = this.#now() + backlogMs;
  }
}

export interface LocalLimiterOptions {
  policy: RatePolicy;
  /** Most buckets kept in memory. */
  entriesMax?: number;
  now?: Clock;
}

/** Buckets of one policy that only this process knows. */
export interface LocalLimiter {
  readonly policy: RatePolicy;
  /** Buckets in memory. */
  readonly size: number;
  bucket(id: string): Bucket;
}

/**
 * Bounds memory at about 10 MB. An attacker with more addresses than this gains nothing: each address has its own
 * bucket anyway.
 */
const ENTRIES_MAX = 50_000;

/**
 * When there is no room for a new bucket, the one that was unused for longest is dropped. It is most likely full, and a
 * full bucket need not be remembered.
 */
export function createLocalLimiter(options: LocalLimiterOptions): LocalLimiter {
  const { policy, entriesMax = ENTRIES_MAX, now = () => performance.now() } = options;
  const buckets = new LRUCache<string, Bucket>({ max: entriesMax });
  return {
    policy,
    get size() {
      return buckets.size;
    },
    bucket: (id) => {
      const known = buckets.get(id);
      if (known !== undefined) return known;
      const bucket = new Bucket(policy, now);
      buckets.set(id, bucket);
      return bucket;
    },
  };
}
