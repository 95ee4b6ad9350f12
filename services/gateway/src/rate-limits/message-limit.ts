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

/** A typical message is 940 bytes long. */
const UNIT_BYTES = 1024;

/**
 * Returns the cost of a body in units: the number of its messages or KiB, whichever is greater, but at least one.
 * @param messages 0 if the body is not a batch
 * @param bytes size as sent or decompressed, whichever is greater
 */
export function unitsOf(messages: number, bytes: number): number {
  return Math.max(1, messages, Math.ceil(bytes / UNIT_BYTES));
}

export interface Allowance {
  /** Charges units for a request, regardless of its outcome. A negative number refunds units. */
  charge(units: number): void;
}

/**
 * Admits a request before its body is read. Returns a promise only while this process has too many unsettled charges.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR if the bucket is empty
 */
export type LimitMessages = (exchange: Exchange, key: KeyRecord) => Allowance | Promise<Allowance>;

/** Limits messages per publishable key and its successors across all processes: contract, "Rate limit". */
export function createMessageLimit(parts: {
  settings: RateLimitSettings;
  ratesOf: EnvironmentRates;
  limiter: Pick<SharedLimiter, 'bucket'>;
  onRefused: OnRefused;
}): LimitMessages {
  const { settings, ratesOf, limiter, onRefused } = parts;
  const policyOf = createPolicies(settings);
  return (exchange, { limitId, environmentId }) => {
    const setting = policyOf(environmentId);
    const rate = ratesOf(environmentId, setting);
    const bucket =
      rate === setting
        ? limiter.bucket(limitId, setting)
        : limiter.bucket(toBucketId(environmentId, rate), { ...rate, name: NAME });
    addLimitHeaders(exchange, () => bucket);
    const decide = (status: RateStatus): Allowance => {
      if (status.allowed) return bucket;
      onRefused(bucket.policy.name);
      throw rateLimitError(status);
    };
    const admitted = bucket.admit();
    return admitted instanceof Promise ? admitted.then(decide) : decide(admitted);
  };
}

const NAME = 'messages';

/**
 * A cap or limit applies to all keys of the environment together, because developers can create keys. A changed rate
 * needs a new bucket, because a bucket stores its debt as a time, which depends on the rate.
 */
function toBucketId(environmentId: string, { perSecond, burst }: MessageRate): string {
  return `${environmentId} ${perSecond}/${burst}`;
}

/** Returns the policies from the settings. */
export function createPolicies(settings: RateLimitSettings): (environmentId: string) => RatePolicy {
  const name = NAME;
  const defaultPolicy = { name, perSecond: settings.RATE_LIMIT_MESSAGES_PER_S, burst: settings.RATE_LIMIT_BURST };
  const policies = new Map([...settings.RATE_LIMITS_BY_ENVIRONMENT].map(([id, rate]) => [id, { name, ...rate }]));
  return (environmentId) => policies.get(environmentId) ?? defaultPolicy;
}
