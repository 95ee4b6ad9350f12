import type { Charge } from './balances.ts';
import { Bucket, type Clock } from './bucket.ts';
import { type RatePolicy, type Standing, unitMs } from './policy.ts';

/** A process may allow as many units as the policy allows in this time before the other processes must know of them. */
const UNSETTLED_MAX_S = 0.1;

/** Most units that one process may allow before the next answer of the shared bucket. */
export function unsettledMax({ perSecond }: RatePolicy): number {
  return Math.ceil(perSecond * UNSETTLED_MAX_S);
}

/** What a bucket needs of the limiter that owns it. */
export interface BucketOwner {
  /** The bucket has charges that other processes do not know of yet. */
  onCharge(bucket: SharedBucket): void;
  /** Waits until enough of the bucket is settled, or until the shared buckets count as away. */
  settled(bucket: SharedBucket): Promise<void>;
}

/**
 * What this process knows of a shared bucket: the last answer, and everything allowed here since. It decides without
 * waiting. Only the amount that is allowed but not yet settled is bounded.
 */
export class SharedBucket {
  readonly #id: string;
  readonly #view: Bucket;
  readonly #owner: BucketOwner;
  readonly #unsettledMax: number;
  /** Units charged here since the last settlement began. */
  #unsent = 0;
  /** Units in the settlement under way. */
  #sent = 0;

  constructor(id: string, { policy, now, owner }: { policy: RatePolicy; now: Clock; owner: BucketOwner }) {
    this.#id = id;
    this.#view = new Bucket(policy, now);
    this.#owner = owner;
    this.#unsettledMax = unsettledMax(policy);
  }

  get policy(): RatePolicy {
    return this.#view.policy;
  }

  /** True when so much is not settled yet that nothing more may be allowed. */
  get isFull(): boolean {
    return this.#sent + this.#unsent >= this.#unsettledMax;
  }

  /** True when a settlement should start now and not after the interval. */
  get isUrgent(): boolean {
    return this.#unsent * 2 >= this.#unsettledMax;
  }

  get hasUnsent(): boolean {
    return this.#unsent > 0;
  }

  /**
   * Whether one more request is allowed. Returns a promise only while too much is not settled: it takes one round trip
   * then.
   */
  admit(): Standing | Promise<Standing> {
    return this.isFull ? this.#owner.settled(this).then(() => this.standing()) : this.standing();
  }

  standing(): Standing {
    return this.#view.standing();
  }

  /** Charges the cost of a request once it is known. */
  charge(units: number): void {
    this.#view.charge(units);
    this.#unsent += units;
    this.#owner.onCharge(this);
  }

  /** Starts a settlement. */
  toCharge(): Charge {
    this.#sent = this.#unsent;
    this.#unsent = 0;
    return { id: this.#id, costMs: this.#sent * unitMs(this.policy) };
  }

  /** Ends a settlement with the shared bucket's answer, which already contains what was sent. */
  settle(backlogMs: number): void {
    this.#sent = 0;
    this.#view.learn(backlogMs + this.#unsent * unitMs(this.policy));
  }

  /**
   * Ends a settlement that got no answer. The charge may have been made, so it is not sent again. What is known stays
   * as it is.
   */
  giveUp(): void {
    this.#sent = 0;
  }
}
