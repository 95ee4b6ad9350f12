import type { Charge } from './balances.ts';
import { Bucket, type Clock } from './bucket.ts';
import { type RatePolicy, type Standing, unitMs } from './policy.ts';

/** Time whose worth of units a process may let in on its own before the others must know of them. */
const UNSETTLED_MAX_S = 0.1;

/** Units that one process may let in before it hears from the shared bucket again. */
export function unsettledMax({ perSecond }: RatePolicy): number {
  return Math.ceil(perSecond * UNSETTLED_MAX_S);
}

/** What a bucket tells the limiter that owns it. */
export interface BucketOwner {
  /** The bucket has charges that the others do not know of. */
  onCharge(bucket: SharedBucket): void;
  /** Waits until the bucket is settled far enough, or the shared buckets are given up for now. */
  settled(bucket: SharedBucket): Promise<void>;
}

/**
 * This process's view of a shared bucket: what the last answer said, and everything let in here since. It decides
 * without waiting; only what it let in and has not settled is bounded.
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

  /** True when so much is unsettled that nothing more may be let in. */
  get isFull(): boolean {
    return this.#sent + this.#unsent >= this.#unsettledMax;
  }

  /** True when settling should no longer wait for its interval. */
  get isUrgent(): boolean {
    return this.#unsent * 2 >= this.#unsettledMax;
  }

  get hasUnsent(): boolean {
    return this.#unsent > 0;
  }

  /** Whether one more request may come in. A promise only while too much is unsettled: one round trip then. */
  admit(): Standing | Promise<Standing> {
    return this.isFull ? this.#owner.settled(this).then(() => this.standing()) : this.standing();
  }

  standing(): Standing {
    return this.#view.standing();
  }

  /** Charges what a request turned out to cost. */
  charge(units: number): void {
    this.#view.charge(units);
    this.#unsent += units;
    this.#owner.onCharge(this);
  }

  /** Begins a settlement. */
  toCharge(): Charge {
    this.#sent = this.#unsent;
    this.#unsent = 0;
    return { id: this.#id, costMs: this.#sent * unitMs(this.policy) };
  }

  /** Ends a settlement with the shared bucket's answer, which includes what was sent. */
  settle(backlogMs: number): void {
    this.#sent = 0;
    this.#view.learn(backlogMs + this.#unsent * unitMs(this.policy));
  }

  /** Ends a settlement without an answer. It may have been made, so it is not made again; the view stands. */
  giveUp(): void {
    this.#sent = 0;
  }
}
