import { PublicError } from '@playline/errors';
import { type RatePolicy, ROUNDING, type Standing } from './policy.ts';
import type { WindowPolicy } from './window-limiter.ts';

/** Any limit that answers tell of. */
export type LimitPolicy = RatePolicy | WindowPolicy;

/** Value of `RateLimit-Policy`: the units allowed at once, and the seconds in which that much is allowed again. */
export function policyField(policy: LimitPolicy): string {
  if ('windowS' in policy) return `"${policy.name}";q=${policy.calls};w=${policy.windowS}`;
  const { name, burst, perSecond } = policy;
  return `"${name}";q=${burst};w=${Math.ceil(burst / perSecond - ROUNDING)}`;
}

/** Value of `RateLimit`: what is left, and the seconds until all of it, or on a refusal any of it, is there again. */
export function limitField({ name }: LimitPolicy, { remaining, waitS }: Standing): string {
  return `"${name}";r=${remaining};t=${waitS}`;
}

/** A limit as far as answers show it. */
export interface Shown {
  readonly policy: LimitPolicy;
  standing(): Standing;
}

/** What one caller has used of a limit. */
export interface Account extends Shown {
  charge(units: number): void;
}

/** An answer that header fields can be added to until it goes out. */
export interface LateHeaders {
  lateHeaders: () => readonly (string | number)[];
}

/** Why a request was refused, for the count of refusals. */
export type OnRefused = (limit: string) => void;

/** Lets every answer of the exchange say where its caller stands when it goes out. */
export function showLimit(exchange: LateHeaders, accountOf: () => Shown): void {
  exchange.lateHeaders = () => {
    const account = accountOf();
    const standing = limitField(account.policy, account.standing());
    return ['ratelimit-policy', policyField(account.policy), 'ratelimit', standing];
  };
}

/** The answer to whoever has used up a limit: decided before any byte of the body is read. */
export function refusal({ waitS }: Standing): PublicError {
  return new PublicError('TOO_MANY_REQUESTS_ERROR', { retryAfterS: waitS });
}

/**
 * Takes one unit for one request, and shows what is left.
 * @throws PublicError TOO_MANY_REQUESTS_ERROR when nothing is; a refused request costs nothing
 */
export function admitRequest(exchange: LateHeaders, account: Account, onRefused: OnRefused): void {
  showLimit(exchange, () => account);
  const standing = account.standing();
  if (!standing.allowed) {
    onRefused(account.policy.name);
    throw refusal(standing);
  }
  account.charge(1);
}
