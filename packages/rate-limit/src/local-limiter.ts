import { LRUCache } from 'lru-cache';
import { Bucket, type Clock } from './bucket.ts';
import type { RatePolicy } from './policy.ts';

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
