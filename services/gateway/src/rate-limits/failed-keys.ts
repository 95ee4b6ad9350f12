import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import type { ClientAddressOf, Exchange, Route } from '@playline/http';
import { type LocalLimiter, type OnRefused, refusal, showLimit } from '@playline/rate-limit';

/** A verifier that knows who asks. @throws PublicError TOO_MANY_REQUESTS_ERROR besides what the verifier throws */
export type GuardedVerifier = (key: string, exchange: Exchange) => ReturnType<KeyVerifier>;

/** The limit on keys that turn out wrong, a client address; in the memory of one process alone. */
export interface FailedKeyLimit {
  /** Puts the limit behind a verifier. */
  guard(verify: KeyVerifier): GuardedVerifier;
  /** Puts the caller's standing under this limit into every answer of a route, unless a more specific limit replaces it. */
  show(route: Route): Route;
}

export interface FailedKeyParts {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}

/**
 * Builds the limit. It bounds only how often a caller is told that a key is wrong. A good key is always served, also from
 * an address that somebody else guesses from, or that still has clients with the key of yesterday. No bound is needed
 * before the check: a wrong key is recognised without a look-up in the store (`@playline/access-keys`).
 */
export function createFailedKeyLimit({ limiter, addressOf, onRefused }: FailedKeyParts): FailedKeyLimit {
  const bucketOf = (exchange: Exchange) => limiter.bucket(addressOf(exchange.request));
  const judge = (record: KeyRecord | null, exchange: Exchange) => {
    if (record === null) take(exchange);
    return record;
  };
  const take = (exchange: Exchange) => {
    const bucket = bucketOf(exchange);
    const standing = bucket.standing();
    if (standing.allowed) return bucket.charge(1);
    showLimit(exchange, () => bucket);
    onRefused(limiter.policy.name);
    throw refusal(standing);
  };
  return {
    guard: (verify) => (key, exchange) => {
      const verdict = verify(key);
      return verdict instanceof Promise ? verdict.then((record) => judge(record, exchange)) : judge(verdict, exchange);
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
