import type { KeyRecord, MessageRate } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import {
  type OnRefused,
  type RatePolicy,
  refusal,
  type SharedLimiter,
  type Standing,
  showLimit,
} from '@playline/rate-limit';
import type { EnvironmentRates } from '../environment-rates.ts';
import type { RateLimitSettings } from './settings.ts';

/**
 * Bytes that count as one message: a usual message of 940 bytes in a body of its own is one unit, and so is each of a
 * batch of them. A mebibyte of anything counts as a thousand, for it is as much work.
 */
const UNIT_BYTES = 1024;

/**
 * What a body costs under the limit of its key: as many units as it has messages, rejected ones too, or as it has KiB,
 * whichever is more; and one at least.
 * @param messages 0 for a body that is no batch
 * @param bytes of the body as sent or after decompression, whichever is more
 */
export function unitsOf(messages: number, bytes: number): number {
  return Math.max(1, messages, Math.ceil(bytes / UNIT_BYTES));
}

/** What a request that was let in is charged with. */
export interface Allowance {
  /** Takes units of what the request turned out to be, accepted or not (`unitsOf`); a negative number gives some back. */
  charge(units: number): void;
}

/**
 * Lets a request in under the limit of its key, before its body is read; a promise only while this process has let in
 * more than the others know. @throws PublicError TOO_MANY_REQUESTS_ERROR while the bucket is empty
 */
export type LimitMessages = (exchange: Exchange, key: KeyRecord) => Allowance | Promise<Allowance>;

export interface MessageLimitParts {
  settings: RateLimitSettings;
  /** What projects say of the rates of their environments. */
  ratesOf: EnvironmentRates;
  limiter: Pick<SharedLimiter, 'bucket'>;
  onRefused: OnRefused;
}

/** Builds the limit of the contract, "Rate limit": messages under one publishable key, on all processes together. */
export function createMessageLimit({ settings, ratesOf, limiter, onRefused }: MessageLimitParts): LimitMessages {
  const policyOf = createPolicies(settings);
  return (exchange, { keyId, environmentId }) => {
    const setting = policyOf(environmentId);
    const rate = ratesOf(environmentId, setting);
    const bucket =
      rate === setting ? limiter.bucket(keyId, setting) : limiter.bucket(idUnder(keyId, rate), { ...rate, name: NAME });
    showLimit(exchange, () => bucket);
    const decide = (standing: Standing): Allowance => {
      if (standing.allowed) return bucket;
      onRefused(bucket.policy.name);
      throw refusal(standing);
    };
    const admitted = bucket.admit();
    return admitted instanceof Promise ? admitted.then(decide) : decide(admitted);
  };
}

const NAME = 'messages';

/**
 * A bucket keeps its debt as a time, which is another number of messages under another rate. So a key whose rate has
 * changed gets a new bucket, which starts full.
 */
function idUnder(keyId: string, { perSecond, burst }: MessageRate): string {
  return `${keyId} ${perSecond}/${burst}`;
}

/** Builds the choice of the policy that settings give an environment: its own, or that of all others. */
export function createPolicies(settings: RateLimitSettings): (environmentId: string) => RatePolicy {
  const name = NAME;
  const usual = { name, perSecond: settings.RATE_LIMIT_MESSAGES_PER_S, burst: settings.RATE_LIMIT_BURST };
  const own = new Map([...settings.RATE_LIMITS_BY_ENVIRONMENT].map(([id, rate]) => [id, { name, ...rate }]));
  return (environmentId) => own.get(environmentId) ?? usual;
}
