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
export interface Standing {
  /** False while less than one unit is left. */
  readonly allowed: boolean;
  /** Units left, never below 0 although the balance may be. */
  readonly remaining: number;
  /** Seconds until the bucket is full. On a refusal: until one unit is there, which is the value of `Retry-After`. */
  readonly waitS: number;
}

/** Clocks and rates are fractions: a unit or a second that is short by less than a millionth counts as whole. */
export const ROUNDING = 1e-6;

/** What a caller has left of a bucket that is full again after `backlogMs`. */
export function toStanding(policy: RatePolicy, backlogMs: number): Standing {
  const remaining = Math.floor(policy.burst - backlogMs / unitMs(policy) + ROUNDING);
  if (remaining >= 1) return { allowed: true, remaining, waitS: Math.ceil(backlogMs / 1000) };
  const emptyMs = backlogMs - (policy.burst - 1) * unitMs(policy);
  return { allowed: false, remaining: 0, waitS: Math.max(1, Math.ceil(emptyMs / 1000 - ROUNDING)) };
}
