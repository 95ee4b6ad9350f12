import { LRUCache } from 'lru-cache';
import { Bucket, type Clock } from './bucket.ts';
import type { RatePolicy } from './policy.ts';

export interface LocalLimiterOptions {
  policy: RatePolicy;
  /** Buckets kept at most. */
  entriesMax?: number;
  now?: Clock;
}

/** Buckets of one policy in this process alone. */
export interface LocalLimiter {
  readonly policy: RatePolicy;
  /** Buckets in memory. */
  readonly size: number;
  bucket(id: string): Bucket;
}

/** Bounds memory at some 10 MB. Whoever owns so many addresses has as many buckets anyway. */
const ENTRIES_MAX = 50_000;

/** The bucket that was used longest ago makes room for a new one: most likely it is full again, hence worth nothing. */
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
