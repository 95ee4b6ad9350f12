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
