import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, toRateStatus, unitMs } from './admit.ts';

/** Monotonic milliseconds. */
export type Clock = () => number;

/**
 * A token bucket, stored as the time at which it is full again (generic cell rate algorithm). Its balance may be
 * negative, because costs are known only after admission.
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
   * Charges units, even below zero; negative units are returned to the bucket.
   * @throws RangeError when `units` is not finite, which would break the bucket permanently
   */
  charge(units: number): void {
    if (!Number.isFinite(units)) throw new RangeError(`a bucket cannot be charged ${units} units`);
    this.#fullAt = Math.max(this.#fullAt, this.#now()) + units * unitMs(this.policy);
  }

  setBacklog(backlogMs: number): void {
    this.#fullAt = this.#now() + backlogMs;
  }
}

export interface LocalLimiterOptions {
  policy: RatePolicy;
  entriesMax?: number;
  now?: Clock;
}

export type LocalLimiter = ReturnType<typeof createLocalLimiter>;

/** At most 10 MB. */
const ENTRIES_MAX = 50_000;

/**
 * Buckets of one policy in this process. At the maximum, the least recently used bucket is dropped: it is most likely
 * full.
 */
export function createLocalLimiter(options: LocalLimiterOptions) {
  const { policy, entriesMax = ENTRIES_MAX, now = () => performance.now() } = options;
  const buckets = new LRUCache<string, Bucket>({ max: entriesMax });
  return {
    policy,
    get size() {
      return buckets.size;
    },
    bucket: (id: string) => {
      const known = buckets.get(id);
      if (known !== undefined) return known;
      const bucket = new Bucket(policy, now);
      buckets.set(id, bucket);
      return bucket;
    },
  };
}
