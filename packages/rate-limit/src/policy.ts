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

/** Where a caller stands under a policy, in the whole numbers that callers are told. */
export interface Standing {
  /** False while the bucket is empty. */
  readonly allowed: boolean;
  /** Units left, never below 0 although a bucket may be in debt. */
  readonly remaining: number;
  /** Seconds until the bucket is full; on a refusal until it is no longer empty, which is the `Retry-After`. */
  readonly waitS: number;
}

/** Clocks and rates are fractions: a unit or second that lacks less than a millionth counts as whole. */
export const ROUNDING = 1e-6;

/** The standing of a bucket that would be full after `backlogMs`. */
export function toStanding(policy: RatePolicy, backlogMs: number): Standing {
  const remaining = Math.floor(policy.burst - backlogMs / unitMs(policy) + ROUNDING);
  if (remaining >= 1) return { allowed: true, remaining, waitS: Math.ceil(backlogMs / 1000) };
  const emptyMs = backlogMs - (policy.burst - 1) * unitMs(policy);
  return { allowed: false, remaining: 0, waitS: Math.max(1, Math.ceil(emptyMs / 1000 - ROUNDING)) };
}
