import type { ClientAddressOf, Route } from '@playline/http';
import { admitRequest, type LocalLimiter, type OnRefused } from '@playline/rate-limit';

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
      admitRequest(exchange, limiter.bucket(addressOf(exchange.request)), onRefused);
      return route.handle(exchange, params);
    },
  });
}
