import { PublicError } from '@playline/errors';
import type { WindowPolicy } from './window-limiter.ts';

/** A burst of `burst` units, and `perSecond` units per second on average. */
export interface RatePolicy {
  /** Name in the header fields: lower-case letters and hyphens. */
  readonly name: string;
  readonly perSecond: number;
  /** At least 1. */
  readonly burst: number;
}

export function unitMs({ perSecond }: RatePolicy): number {
  return 1000 / perSecond;
}

export interface RateStatus {
  /** False when less than one unit is left. */
  readonly allowed: boolean;
  /** Units, never below 0. */
  readonly remaining: number;
  /** Seconds until the bucket is full, or after a refusal until one unit is available (`Retry-After`). */
  readonly waitS: number;
}

export const ROUNDING_TOLERANCE = 1e-6;

/** The status of a bucket that is full after `backlogMs`. */
export function toRateStatus(policy: RatePolicy, backlogMs: number): RateStatus {
  const remaining = Math.floor(policy.burst - backlogMs / unitMs(policy) + ROUNDING_TOLERANCE);
  if (remaining >= 1) return { allowed: true, remaining, waitS: Math.ceil(backlogMs / 1000) };
  const emptyMs = backlogMs - (policy.burst - 1) * unitMs(policy);
  return { allowed: false, remaining: 0, waitS: Math.max(1, Math.ceil(emptyMs / 1000 - ROUNDING_TOLERANCE)) };
}

export type LimitPolicy = RatePolicy | WindowPolicy;

/** `RateLimit-Policy`: `q` units in `w` seconds. */
export function policyField(policy: LimitPolicy): string {
  if ('windowS' in policy) return `"${policy.name}";q=${policy.calls};w=${policy.windowS}`;
  const { name, burst, perSecond } = policy;
  return `"${name}";q=${burst};w=${Math.ceil(burst / perSecond - ROUNDING_TOLERANCE)}`;
}

/** `RateLimit`: `r` units are left. In `t` seconds all are available again, or after a refusal one. */
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

/** Adds the caller's limit, read when the response is sent. */
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
 * Charges one unit for a request.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when no unit is left; a refused request is not charged
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
