import { PublicError } from '@playline/errors';
import type { WindowPolicy } from './window-limiter.ts';

/** How much one caller may use: `burst` units at once, `perSecond` units in the long run. */
export interface RatePolicy {
  /** Its name in the header fields: lower-case letters and hyphens. */
  readonly name: string;
  readonly perSecond: number;
  /** At least 1. */
  readonly burst: number;
}

/** Milliseconds in which a policy allows one more unit. */
export function unitMs({ perSecond }: RatePolicy): number {
  return 1000 / perSecond;
}

/** What a caller has left under a policy, in the whole numbers that callers are shown. */
export interface RateStatus {
  /** False while less than one unit is left. */
  readonly allowed: boolean;
  /** Units left, never below 0 although the balance may be. */
  readonly remaining: number;
  /** Seconds until the bucket is full. On a refusal: until one unit is there, which is the value of `Retry-After`. */
  readonly waitS: number;
}

/** Clocks and rates are fractions: a unit or a second that is short by less than a millionth counts as whole. */
export const ROUNDING_TOLERANCE = 1e-6;

/** What a caller has left of a bucket that is full again after `backlogMs`. */
export function toRateStatus(policy: RatePolicy, backlogMs: number): RateStatus {
  const remaining = Math.floor(policy.burst - backlogMs / unitMs(policy) + ROUNDING_TOLERANCE);
  if (remaining >= 1) return { allowed: true, remaining, waitS: Math.ceil(backlogMs / 1000) };
  const emptyMs = backlogMs - (policy.burst - 1) * unitMs(policy);
  return { allowed: false, remaining: 0, waitS: Math.max(1, Math.ceil(emptyMs / 1000 - ROUNDING_TOLERANCE)) };
}

/** Any limit that the header fields of an answer can describe. */
export type LimitPolicy = RatePolicy | WindowPolicy;

/**
 * Value of `RateLimit-Policy`: how many units are allowed at once (`q`), and in how many seconds that much is allowed
 * again (`w`).
 */
export function policyField(policy: LimitPolicy): string {
  if ('windowS' in policy) return `"${policy.name}";q=${policy.calls};w=${policy.windowS}`;
  const { name, burst, perSecond } = policy;
  return `"${name}";q=${burst};w=${Math.ceil(burst / perSecond - ROUNDING_TOLERANCE)}`;
}

/**
 * Value of `RateLimit`: how much is left (`r`), and the seconds (`t`) until all of it is there again. On a refusal:
 * until one unit is.
 */
export function limitField({ name }: LimitPolicy, { remaining, waitS }: RateStatus): string {
  return `"${name}";r=${remaining};t=${waitS}`;
}

/** The part of a limit that answers show. */
export interface ReportedLimit {
  readonly policy: LimitPolicy;
  status(): RateStatus;
}

/** What one caller has used of a limit. */
export interface Account extends ReportedLimit {
  charge(units: number): void;
}

/** An answer to which header fields can be added until it is sent. */
export interface LateHeaders {
  lateHeaders: () => readonly (string | number)[];
}

/** Called with the name of the limit when a request is refused, to count refusals. */
export type OnRefused = (limit: string) => void;

/** Makes every answer of the exchange carry the caller's limit, as it is when the answer is sent. */
export function addLimitHeaders(exchange: LateHeaders, accountOf: () => ReportedLimit): void {
  exchange.lateHeaders = () => {
    const account = accountOf();
    const standing = limitField(account.policy, account.status());
    return ['ratelimit-policy', policyField(account.policy), 'ratelimit', standing];
  };
}

/** The answer to a caller who has used up a limit. It is decided before any byte of the body is read. */
export function rateLimitError({ waitS }: RateStatus): PublicError {
  return new PublicError('TOO_MANY_REQUESTS_ERROR', { retryAfterS: waitS });
}

/**
 * Takes one unit for one request, and shows what is left.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when nothing is left; a refused request costs nothing
 */
export function admitRequest(exchange: LateHeaders, account: Account, onRefused: OnRefused): void {
  addLimitHeaders(exchange, () => account);
  const standing = account.status();
  if (!standing.allowed) {
    onRefused(account.policy.name);
    throw rateLimitError(standing);
  }
  account.charge(1);
}
