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

/** A usual message has 940 bytes. */
const UNIT_BYTES = 1024;

/**
 * Units that a body costs: its messages or its KiB, whichever is more, at least one.
 * @param messages 0 for a body that is not a batch
 * @param bytes as sent or decompressed, whichever is more
 */
export function unitsOf(messages: number, bytes: number): number {
  return Math.max(1, messages, Math.ceil(bytes / UNIT_BYTES));
}

export interface Allowance {
  /** Charges units, accepted or not; a negative number returns units. */
  charge(units: number): void;
}

/**
 * Admits a request before its body is read. A promise only while this process has too much unsettled.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR while the bucket is empty
 */
export type LimitMessages = (exchange: Exchange, key: KeyRecord) => Allowance | Promise<Allowance>;

/** The limit on messages per publishable key over all processes: contract, "Rate limit". */
export function createMessageLimit(parts: {
  settings: RateLimitSettings;
  ratesOf: EnvironmentRates;
  limiter: Pick<SharedLimiter, 'bucket'>;
  onRefused: OnRefused;
}): LimitMessages {
  const { settings, ratesOf, limiter, onRefused } = parts;
  const policyOf = createPolicies(settings);
  return (exchange, { keyId, environmentId }) => {
    const setting = policyOf(environmentId);
    const rate = ratesOf(environmentId, setting);
    const bucket =
      rate === setting ? limiter.bucket(keyId, setting) : limiter.bucket(idUnder(keyId, rate), { ...rate, name: NAME });
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

/** A bucket stores its debt as a time, which means other units under another rate: a changed rate gets a new bucket. */
function idUnder(keyId: string, { perSecond, burst }: MessageRate): string {
  return `${keyId} ${perSecond}/${burst}`;
}

/** The policy of an environment in the settings. */
export function createPolicies(settings: RateLimitSettings): (environmentId: string) => RatePolicy {
  const name = NAME;
  const usual = { name, perSecond: settings.RATE_LIMIT_MESSAGES_PER_S, burst: settings.RATE_LIMIT_BURST };
  const own = new Map([...settings.RATE_LIMITS_BY_ENVIRONMENT].map(([id, rate]) => [id, { name, ...rate }]));
  return (environmentId) => own.get(environmentId) ?? usual;
}
