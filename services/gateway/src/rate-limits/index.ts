import { createClientAddress, type Route } from '@playline/http';
import { admitRequest, createLocalLimiter, type SharedLimiter, type SharedLimiterOptions } from '@playline/rate-limit';
import type { Logger, Metrics } from '@playline/runtime';
import { createFailedKeyLimit } from '../authorise.ts';
import type { EnvironmentRates } from '../environment-rates.ts';
import { createMessageLimit } from './message-limit.ts';
import type { RateLimitSettings } from './settings.ts';

export type RateLimits = ReturnType<typeof createRateLimits>;

export interface RateLimitParts {
  settings: RateLimitSettings;
  /** The rates that projects set for their environments. */
  ratesOf: EnvironmentRates;
  /** Counts messages across all processes. */
  limiter: Pick<SharedLimiter, 'bucket'>;
  metrics: Metrics;
  onInvalidKey: Parameters<typeof createFailedKeyLimit>[0]['onInvalid'];
}

/** Limits per client address stay in this process, because client addresses are personal data. */
export function createRateLimits({ settings, ratesOf, limiter, metrics, onInvalidKey }: RateLimitParts) {
  const refused = metrics.counter('playline_gateway_rate_limited_total', 'Requests refused, by limit', ['limit']);
  const onRefused = (limit: string) => refused.inc({ limit });
  const addressOf = createClientAddress(settings.TRUSTED_PROXIES);
  const createLimiter = (name: string, perSecond: number, burst: number) =>
    createLocalLimiter({ policy: { name, perSecond, burst } });
  const { RATE_LIMIT_FAILED_KEYS_PER_MINUTE: perMinute } = settings;
  const failedKeys = createLimiter('failed-keys', perMinute / 60, perMinute);
  const consents = createLimiter('consents', settings.RATE_LIMIT_CONSENTS_PER_S, settings.RATE_LIMIT_CONSENTS_BURST);
  return {
    messages: createMessageLimit({ settings, ratesOf, limiter, onRefused }),
    failedKeys: createFailedKeyLimit({ limiter: failedKeys, addressOf, onRefused, onInvalid: onInvalidKey }),
    consents: (route: Route): Route => ({
      ...route,
      handle: (exchange, params) => {
        admitRequest(exchange, consents.bucket(addressOf(exchange.request)), onRefused);
        return route.handle(exchange, params);
      },
    }),
  };
}

/** Reports in the log and in a metric when the gateways stop or resume sharing the limits. */
export function createSharedLog(metrics: Metrics, logger: Logger): NonNullable<SharedLimiterOptions['onShared']> {
  const help = '1 while rate limits apply across all processes';
  const gauge = metrics.gauge('playline_gateway_rate_limit_shared', help);
  gauge.set(1);
  return (shared, fault) => {
    gauge.set(shared ? 1 : 0);
    if (shared) logger.info('rate limits are shared across gateways again');
    else logger.warn({ error: fault }, 'rate limits are not shared; each gateway applies them separately');
  };
}
