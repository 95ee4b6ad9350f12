import { type RatePolicy, ROUNDING, type Standing } from './policy.ts';

/** Value of `RateLimit-Policy`: the burst, and the seconds in which that much is allowed again. */
export function policyField({ name, burst, perSecond }: RatePolicy): string {
  return `"${name}";q=${burst};w=${Math.ceil(burst / perSecond - ROUNDING)}`;
}

/** Value of `RateLimit`: what is left, and the seconds until all of it, or on a refusal any of it, is there again. */
export function limitField({ name }: RatePolicy, { remaining, waitS }: Standing): string {
  return `"${name}";r=${remaining};t=${waitS}`;
}
