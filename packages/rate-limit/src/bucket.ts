import { type RatePolicy, type Standing, toStanding, unitMs } from './policy.ts';

/** Monotonic milliseconds. */
export type Clock = () => number;

/**
 * A token bucket that is stored as one number: the moment at which it is full again (generic cell rate algorithm). Its
 * balance may fall below zero, because the cost of a request is known only after the request was allowed.
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
   * Takes units out, also below zero. A negative number gives units back.
   * @throws RangeError when `units` is not a finite number: it would spoil the bucket for ever, here and where it is
   * shared
   */
  charge(units: number): void {
    if (!Number.isFinite(units)) throw new RangeError(`a bucket cannot be charged ${units} units`);
    this.#fullAt = Math.max(this.#fullAt, this.#now()) + units * unitMs(this.policy);
  }

  /** Replaces what was known of the bucket: it will be full after this time. */
  learn(backlogMs: number): void {
    this.#fullAt = this.#now() + backlogMs;
  }
}
