import { createClientAddress } from '@playline/http';
import { createLocalLimiter, type SharedLimiter } from '@playline/rate-limit';
import type { Metrics } from '@playline/runtime';
import type { EnvironmentRates } from '../environment-rates.ts';
import { createConsentLimit, type LimitRoute } from './consent-limit.ts';
import { createFailedKeyLimit, type FailedKeyLimit } from './failed-keys.ts';
import { createMessageLimit, type LimitMessages } from './message-limit.ts';
import type { RateLimitSettings } from './settings.ts';

export { unitsOf } from './charge.ts';
export type { Allowance, LimitMessages } from './message-limit.ts';

/** Every limit on callers that the gateway has. */
export interface RateLimits {
  readonly messages: LimitMessages;
  readonly failedKeys: FailedKeyLimit;
  readonly consents: LimitRoute;
}

export interface RateLimitParts {
  settings: RateLimitSettings;
  /** What projects say of the rates of their environments. */
  ratesOf: EnvironmentRates;
  /** Counts messages on all processes together. */
  limiter: Pick<SharedLimiter, 'bucket'>;
  metrics: Metrics;
}

/** Client addresses are personal data: what is counted by address stays in this process. */
export function createRateLimits({ settings, ratesOf, limiter, metrics }: RateLimitParts): RateLimits {
  const refused = metrics.counter('gateway_rate_limited_total', 'Requests refused, by the limit', ['limit']);
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
