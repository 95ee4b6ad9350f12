import { type ClientAddressOf, createClientAddress, type Route } from '@playline/http';
import {
  admitRequest,
  createLocalLimiter,
  type LocalLimiter,
  type OnRefused,
  type SharedLimiter,
  type SharedLimiterOptions,
} from '@playline/rate-limit';
import type { Logger, Metrics } from '@playline/runtime';
import { createFailedKeyLimit, type FailedKeyLimit } from '../authorise.ts';
import type { EnvironmentRates } from '../environment-rates.ts';
import { createMessageLimit, type LimitMessages } from './message-limit.ts';
import type { RateLimitSettings } from './settings.ts';

export type LimitRoute = (route: Route) => Route;

export interface RateLimits {
  readonly messages: LimitMessages;
  readonly failedKeys: FailedKeyLimit;
  readonly consents: LimitRoute;
}

export interface RateLimitParts {
  settings: RateLimitSettings;
  /** Rates that projects set for their environments. */
  ratesOf: EnvironmentRates;
  /** Counts messages of all processes. */
  limiter: Pick<SharedLimiter, 'bucket'>;
  metrics: Metrics;
}

/** Client addresses are personal data, so their counts stay in this process. */
export function createRateLimits({ settings, ratesOf, limiter, metrics }: RateLimitParts): RateLimits {
  const refused = metrics.counter('playline_gateway_rate_limited_total', 'Requests refused, by the limit', ['limit']);
  const onRefused = (limit: string) => refused.inc({ limit });
  const addressOf = createClientAddress(settings.TRUSTED_PROXIES);
  const failedKeys = createLocalLimiter({
    policy: {
      name: 'failed-keys',
      perSecond: settings.RATE_LIMIT_FAILED_KEYS_PER_MINUTE / 60,
      burst: settings.RATE_LIMIT_FAILED_KEYS_PER_MINUTE,
    },
  });
  const consents = createLocalLimiter({
    policy: {
      name: 'consents',
      perSecond: settings.RATE_LIMIT_CONSENTS_PER_S,
      burst: settings.RATE_LIMIT_CONSENTS_BURST,
    },
  });
  return {
    messages: createMessageLimit({ settings, ratesOf, limiter, onRefused }),
    failedKeys: createFailedKeyLimit({ limiter: failedKeys, addressOf, onRefused }),
    consents: createConsentLimit({ limiter: consents, addressOf, onRefused }),
  };
}

interface ConsentLimitParts {
  limiter: LocalLimiter;
  addressOf: ClientAddressOf;
  onRefused: OnRefused;
}

function createConsentLimit({ limiter, addressOf, onRefused }: ConsentLimitParts): LimitRoute {
  return (route) => ({
    ...route,
    handle: (exchange, params) => {
      admitRequest(exchange, limiter.bucket(addressOf(exchange.request)), onRefused);
      return route.handle(exchange, params);
    },
  });
}

/** Reports whether the gateways share the limits. */
export function createSharedLog(metrics: Metrics, logger: Logger): NonNullable<SharedLimiterOptions['onShared']> {
  const gauge = metrics.gauge(
    'playline_gateway_rate_limit_shared',
    '1 while the limit of a key holds on all processes together',
  );
  gauge.set(1);
  return (shared, fault) => {
    gauge.set(shared ? 1 : 0);
    if (shared) logger.info('rate limits are shared again');
    else logger.warn({ error: fault }, 'rate limits are held by this process alone');
  };
}
