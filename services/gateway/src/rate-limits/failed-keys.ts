import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import type { Exchange, Route } from '@playline/http';
import type { Bucket, LocalLimiter } from '@playline/rate-limit';
import { LRUCache } from 'lru-cache';
import type { ClientAddressOf } from './client-address.ts';
import { type OnRefused, refusal, showLimit } from './refuse.ts';

/** A verifier that knows who asks. @throws PublicError TOO_MANY_REQUESTS_ERROR besides what the verifier throws */
export type GuardedVerifier = (key: string, exchange: Exchange) => ReturnType<KeyVerifier>;

/** The limit on keys that turn out wrong, a client address; in the memory of one process alone. */
export interface FailedKeyLimit {
  /** Puts the limit in front of a verifier. */
  guard(verify: KeyVerifier): GuardedVerifier;
  /** Lets every answer of a route say where its caller stands, until a limit that is nearer says more. */
  show(route: Route): Route;
}

export interface FailedKeyParts {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}

/** As many as the verifier itself remembers. */
const GOOD_KEYS_MAX = 10_000;

/**
 * Builds the limit. A key that was good the last time is not asked about its address, so whoever shares one with a
 * guesser is served all the same. Every other key takes from the address's bucket before it is looked up, and gets it
 * back when it is good, so that a thousand tries at once are no more than one by one.
 */
export function createFailedKeyLimit({ limiter, addressOf, onRefused }: FailedKeyParts): FailedKeyLimit {
  const bucketOf: BucketOf = (exchange) => limiter.bucket(addressOf(exchange.request));
  const take: BucketOf = (exchange) => {
    const bucket = bucketOf(exchange);
    const standing = bucket.standing();
    if (!standing.allowed) {
      showLimit(exchange, () => bucket);
      onRefused(limiter.policy.name);
      throw refusal(standing);
    }
    bucket.charge(1);
    return bucket;
  };
  return {
    guard: (verify) => {
      const good = new LRUCache<string, true>({ max: GOOD_KEYS_MAX });
      const verifyKnown = createKnownVerifier(verify, good, bucketOf);
      const verifyOther = createOtherVerifier(verify, good, take);
      return (key, exchange) => (good.has(key) ? verifyKnown(key, exchange) : verifyOther(key, exchange));
    },
    show: (route) => ({
      ...route,
      handle: (exchange, params) => {
        showLimit(exchange, () => bucketOf(exchange));
        return route.handle(exchange, params);
      },
    }),
  };
}

type BucketOf = (exchange: Exchange) => Bucket;
type GoodKeys = LRUCache<string, true>;

/** For keys that were good: they cost something only when they have ended. */
function createKnownVerifier(verify: KeyVerifier, good: GoodKeys, bucketOf: BucketOf): GuardedVerifier {
  const judge = (key: string, exchange: Exchange, record: KeyRecord | null) => {
    if (record === null) {
      good.delete(key);
      bucketOf(exchange).charge(1);
    }
    return record;
  };
  return (key, exchange) => {
    const verdict = verify(key);
    return verdict instanceof Promise
      ? verdict.then((record) => judge(key, exchange, record))
      : judge(key, exchange, verdict);
  };
}

/** For all other keys: they take first, and get it back unless it is the key that was at fault. */
function createOtherVerifier(verify: KeyVerifier, good: GoodKeys, take: BucketOf): GuardedVerifier {
  const judge = (key: string, bucket: Bucket, record: KeyRecord | null) => {
    if (record === null) return null;
    good.set(key, true);
    bucket.charge(-1);
    return record;
  };
  return (key, exchange) => {
    const bucket = take(exchange);
    const verdict = verify(key);
    if (!(verdict instanceof Promise)) return judge(key, bucket, verdict);
    const onFault = (fault: unknown) => {
      bucket.charge(-1);
      throw fault;
    };
    return verdict.then((record) => judge(key, bucket, record), onFault);
  };
}
