import { MESSAGE_RATE_MAX, type MessageRate } from '@playline/contracts';
import { settings } from '@playline/runtime';
import { z } from 'zod';

/** Contract, "Rate limit". */
const MESSAGES_PER_S = 5000;
/** Two seconds of messages, for clients that were offline. */
const MESSAGES_BURST = 10_000;
/** Guessing a key would take 2^178 attempts. */
const FAILED_KEYS_PER_MINUTE = 60;
/** Enough for many players who share an address. */
const CONSENTS_PER_S = 100;
const CONSENTS_BURST = 200;

const perSecond = () => settings.integer(1, MESSAGE_RATE_MAX.perSecond);
const burst = () => settings.integer(1, MESSAGE_RATE_MAX.burst);
const rate = z.object({ perSecond: perSecond(), burst: burst() });
const ENTRY = /^([a-z0-9_-]{1,64})=(\d+)\/(\d+)$/;

/** `environment=perSecond/burst`, comma-separated, such as `demo-development=500/1000`. */
const ratesByEnvironment = () =>
  z
    .string()
    .default('')
    .transform((text, context): ReadonlyMap<string, MessageRate> => {
      const rates = new Map<string, MessageRate>();
      for (const entry of text.split(',').map((part) => part.trim())) {
        if (entry === '') continue;
        const [, environmentId = '', perSecond, burst] = ENTRY.exec(entry) ?? [];
        const parsed = rate.safeParse({ perSecond, burst });
        if (parsed.success && !rates.has(environmentId)) rates.set(environmentId, parsed.data);
        else context.addIssue('expected comma-separated environment=perSecond/burst, each environment once');
      }
      return rates;
    });

export const rateLimitSettings = {
  /** Messages per publishable key across all gateways. */
  RATE_LIMIT_MESSAGES_PER_S: perSecond().default(MESSAGES_PER_S),
  /** Maximum burst of messages per publishable key. */
  RATE_LIMIT_BURST: burst().default(MESSAGES_BURST),
  /** Message rates for individual environments: `demo-development=500/1000,demo-production=20000/40000`. */
  RATE_LIMITS_BY_ENVIRONMENT: ratesByEnvironment(),
  /** Invalid keys per client address. */
  RATE_LIMIT_FAILED_KEYS_PER_MINUTE: settings.integer(1, 1_000_000).default(FAILED_KEYS_PER_MINUTE),
  /** Consent operations per client address. */
  RATE_LIMIT_CONSENTS_PER_S: perSecond().default(CONSENTS_PER_S),
  /** Maximum burst of consent operations per client address. */
  RATE_LIMIT_CONSENTS_BURST: burst().default(CONSENTS_BURST),
  /** Number of trusted proxies that add `X-Forwarded-For` entries; 0 uses the address of the connection. */
  TRUSTED_PROXIES: settings.trustedProxies(),
};

export type RateLimitSettings = z.infer<z.ZodObject<typeof rateLimitSettings>>;
