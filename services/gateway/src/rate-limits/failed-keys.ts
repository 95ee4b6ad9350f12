import type { KeyRecord, KeyVerifier } from '@playline/access-keys';
import type { ClientAddressOf, Exchange, Route } from '@playline/http';
import { type LocalLimiter, type OnRefused, refusal, showLimit } from '@playline/rate-limit';

/** A verifier that knows the caller. @throws PublicError TOO_MANY_REQUESTS_ERROR besides what the verifier throws */
export type GuardedVerifier = (key: string, exchange: Exchange) => ReturnType<KeyVerifier>;

/** The limit on wrong keys per client address; counted in this process only. */
export interface FailedKeyLimit {
  /** Wraps a verifier: keys that it refuses are charged. */
  guard(verify: KeyVerifier): GuardedVerifier;
  /** Adds the limit's header fields to every answer of a route, unless a more specific limit replaces them. */
  show(route: Route): Route;
}

export interface FailedKeyParts {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}

/**
 * Builds the limit. It bounds only how often a caller learns that a key is wrong. A valid key is always served, even if
 * other clients of the same address guess keys or still use a replaced one. No bound is needed before the check,
 * because a wrong key is recognised without a look-up in the store (`@playline/access-keys`).
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
