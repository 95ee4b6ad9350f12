import type { Route } from '@playline/http';
import type { LocalLimiter } from '@playline/rate-limit';
import type { ClientAddressOf } from './client-address.ts';
import { type OnRefused, refusal, showLimit } from './refuse.ts';

/** Puts the limit in front of a route. */
export type LimitRoute = (route: Route) => Route;

export interface ConsentLimitParts {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}

/** Builds the limit of the consent operations: requests, a client address, in the memory of one process alone. */
export function createConsentLimit({ limiter, addressOf, onRefused }: ConsentLimitParts): LimitRoute {
  return (route) => ({
    ...route,
    handle: (exchange, params) => {
      const bucket = limiter.bucket(addressOf(exchange.request));
      showLimit(exchange, () => bucket);
      const standing = bucket.standing();
      if (!standing.allowed) {
        onRefused(limiter.policy.name);
        throw refusal(standing);
      }
      bucket.charge(1);
      return route.handle(exchange, params);
    },
  });
}
