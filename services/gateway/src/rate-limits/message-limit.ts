import type { KeyRecord, MessageRate } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import {
  addLimitHeaders,
  type OnRefused,
  type RatePolicy,
  type RateStatus,
  rateLimitError,
  type SharedLimiter,
} from '@playline/rate-limit';
import type { EnvironmentRates } from '../environment-rates.ts';
import type { RateLimitSettings } from './settings.ts';

/**
 * Bytes that count as one message. A usual message has 940 bytes, so it is one unit, alone or in a batch. A mebibyte of
 * anything counts as a thousand messages, because it is as much work.
 */
const UNIT_BYTES = 1024;

/**
 * Units that a body costs under the limit of its key: the number of its messages, rejected ones included, or of its
 * KiB, whichever is more, and at least one.
 * @param messages 0 for a body that is not a batch
 * @param bytes of the body as sent or after decompression, whichever is more
 */
export function unitsOf(messages: number, bytes: number): number {
  return Math.max(1, messages, Math.ceil(bytes / UNIT_BYTES));
}

/** Charges an admitted request. */
export interface Allowance {
  /** Charges the units of the request (`unitsOf`), accepted or not; a negative number gives units back. */
  charge(units: number): void;
}

/**
 * Admits a request under the limit of its key, before its body is read. Returns a promise only while this process has
 * admitted more than the others know. @throws PublicError TOO_MANY_REQUESTS_ERROR while the bucket is empty
 */
export type LimitMessages = (exchange: Exchange, key: KeyRecord) => Allowance | Promise<Allowance>;

export interface MessageLimitParts {
  settings: RateLimitSettings;
  /** Rates that projects set for their environments. */
  ratesOf: EnvironmentRates;
  limiter: Pick<SharedLimiter, 'bucket'>;
  onRefused: OnRefused;
}

/** Builds the limit on messages per publishable key, counted over all processes: contract, "Rate limit". */
export function createMessageLimit({ settings, ratesOf, limiter, onRefused }: MessageLimitParts): LimitMessages {
  const policyOf = createPolicies(settings);
  return (exchange, { keyId, environmentId }) => {
    const setting = policyOf(environmentId);
    const rate = ratesOf(environmentId, setting);
    const bucket =
      rate === setting ? limiter.bucket(keyId, setting) : limiter.bucket(idUnder(keyId, rate), { ...rate, name: NAME });
    addLimitHeaders(exchange, () => bucket);
    const decide = (standing: RateStatus): Allowance => {
      if (standing.allowed) return bucket;
      onRefused(bucket.policy.name);
      throw rateLimitError(standing);
    };
    const admitted = bucket.admit();
    return admitted instanceof Promise ? admitted.then(decide) : decide(admitted);
  };
}

const NAME = 'messages';

/**
 * A bucket stores its debt as a time, which means another number of messages under another rate. So a key whose rate
 * has changed gets a new bucket, which starts full.
 */
function idUnder(keyId: string, { perSecond, burst }: MessageRate): string {
  return `${keyId} ${perSecond}/${burst}`;
}

/** Builds the look-up of an environment's policy in the settings: its own, or the default. */
export function createPolicies(settings: RateLimitSettings): (environmentId: string) => RatePolicy {
  const name = NAME;
  const usual = { name, perSecond: settings.RATE_LIMIT_MESSAGES_PER_S, burst: settings.RATE_LIMIT_BURST };
  const own = new Map([...settings.RATE_LIMITS_BY_ENVIRONMENT].map(([id, rate]) => [id, { name, ...rate }]));
  return (environmentId) => own.get(environmentId) ?? usual;
}
