import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, toRateStatus, unitMs } from './admit.ts';

/** Returns monotonic milliseconds. */
export type Clock = () => number;

/**
 * A token bucket, represented by the time at which it will be full (generic cell rate algorithm). The balance may be
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
   * Charges units, even if the balance becomes negative. Negative units refund earlier charges.
   * @throws RangeError if `units` is not finite, which would break the bucket permanently
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

/** Limits memory usage to 10 MB. */
const ENTRIES_MAX = 50_000;

/**
 * Buckets for one policy in this process. Above the maximum, the least recently used bucket is dropped, because it is
 * most likely full.
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
      const existing = buckets.get(id);
      if (existing !== undefined) return existing;
      const bucket = new Bucket(policy, now);
      buckets.set(id, bucket);
      return bucket;
    },
  };
}
