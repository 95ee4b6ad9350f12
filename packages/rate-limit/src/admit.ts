import { PublicError } from '@playline/errors';
import type { WindowPolicy } from './window-limiter.ts';

/** Allows bursts of up to `burst` units, and `perSecond` units per second on average. */
export interface RatePolicy {
  /** Policy name in the header fields. Consists of lower-case letters and hyphens. */
  readonly name: string;
  readonly perSecond: number;
  /** At least 1. */
  readonly burst: number;
}

export function unitMs({ perSecond }: RatePolicy): number {
  return 1000 / perSecond;
}

export interface RateStatus {
  /** False if less than one unit is available. */
  readonly allowed: boolean;
  /** Available units, never negative. */
  readonly remaining: number;
  /** Seconds until the bucket is full. For a refused request: seconds until one unit is available (`Retry-After`). */
  readonly waitS: number;
}

export const ROUNDING_TOLERANCE = 1e-6;

/** Returns the status of a bucket that will be full after `backlogMs`. */
export function toRateStatus(policy: RatePolicy, backlogMs: number): RateStatus {
  const remaining = Math.floor(policy.burst - backlogMs / unitMs(policy) + ROUNDING_TOLERANCE);
  if (remaining >= 1) return { allowed: true, remaining, waitS: Math.ceil(backlogMs / 1000) };
  const emptyMs = backlogMs - (policy.burst - 1) * unitMs(policy);
  return { allowed: false, remaining: 0, waitS: Math.max(1, Math.ceil(emptyMs / 1000 - ROUNDING_TOLERANCE)) };
}

export type LimitPolicy = RatePolicy | WindowPolicy;

/** Returns the `RateLimit-Policy` field: `q` units in `w` seconds. */
export function policyField(policy: LimitPolicy): string {
  if ('windowS' in policy) return `"${policy.name}";q=${policy.calls};w=${policy.windowS}`;
  const { name, burst, perSecond } = policy;
  return `"${name}";q=${burst};w=${Math.ceil(burst / perSecond - ROUNDING_TOLERANCE)}`;
}

/** Returns the `RateLimit` field: `r` available units, and `t` as in `waitS`. */
export function limitField({ name }: LimitPolicy, { remaining, waitS }: RateStatus): string {
  return `"${name}";r=${remaining};t=${waitS}`;
}

export interface ReportedLimit {
  readonly policy: LimitPolicy;
  status(): RateStatus;
}

export interface Account extends ReportedLimit {
  charge(units: number): void;
}

export interface LateHeaders {
  lateHeaders: () => readonly (string | number)[];
}

export type OnRefused = (limit: string) => void;

/** Adds the rate limit header fields, whose values are read when the response is sent. */
export function addLimitHeaders(exchange: LateHeaders, accountOf: () => ReportedLimit): void {
  exchange.lateHeaders = () => {
    const account = accountOf();
    const { policy } = account;
    return ['ratelimit-policy', policyField(policy), 'ratelimit', limitField(policy, account.status())];
  };
}

export function rateLimitError({ waitS }: RateStatus): PublicError {
  return new PublicError('TOO_MANY_REQUESTS_ERROR', { retryAfterS: waitS });
}

/**
 * Admits a request and charges one unit. Refused requests are not charged.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR if no unit is available
 */
export function admitRequest(exchange: LateHeaders, account: Account, onRefused: OnRefused): void {
  addLimitHeaders(exchange, () => account);
  const status = account.status();
  if (!status.allowed) {
    onRefused(account.policy.name);
    throw rateLimitError(status);
  }
  account.charge(1);
}
