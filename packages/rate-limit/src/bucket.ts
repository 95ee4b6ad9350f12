import { type RatePolicy, type Standing, toStanding, unitMs } from './policy.ts';

/** Monotonic milliseconds. */
export type Clock = () => number;

/**
 * A token bucket kept as one number, the moment at which it is full again (generic cell rate algorithm). It may go into
 * debt: what a request costs is known only after it has been let in.
 */
export class Bucket {
  readonly policy: RatePolicy;
  readonly #now: Clock;
  #fullAt = 0;

  constructor(policy: RatePolicy, now: Clock) {
    this.policy = policy;
    this.#now = now;
  }

  standing(): Standing {
    return toStanding(this.policy, Math.max(0, this.#fullAt - this.#now()));
  }

  /**
   * Takes units out, debt or not; a negative number gives units back.
   * @throws RangeError when that is no number: the bucket would never be one again, here and where it is shared
   */
  charge(units: number): void {
    if (!Number.isFinite(units)) throw new RangeError(`a bucket cannot be charged ${units} units`);
    this.#fullAt = Math.max(this.#fullAt, this.#now()) + units * unitMs(this.policy);
  }

  /** Replaces what was known of it: it will be full after this time. */
  learn(backlogMs: number): void {
    this.#fullAt = this.#now() + backlogMs;
  }
}
