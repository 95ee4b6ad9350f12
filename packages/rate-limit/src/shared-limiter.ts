import { answerWithin } from '@playline/stores';
import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, unitMs } from './admit.ts';
import { Bucket, type Clock } from './bucket.ts';

/** What one process has allowed for one id since its last report. */
export interface Charge {
  readonly id: string;
  /** The units as milliseconds: the time in which the policy allows so many again. 0 only asks. */
  readonly costMs: number;
}

/** Buckets that all processes share. A bucket is stored as the moment at which it is full again. */
export interface SharedBalances {
  /**
   * Charges every id once, also below zero.
   * @returns for each charge, in order, the milliseconds until that bucket is full
   * @throws when the store does not answer; the charges may have been made all the same
   */
  charge(charges: readonly Charge[]): Promise<number[]>;
}

export interface SharedLimiterOptions {
  balances: SharedBalances;
  /** Called when the shared buckets stop answering (with the fault) and when they answer again. */
  onShared?: (shared: boolean, fault: unknown) => void;
  now?: Clock;
  /** Most buckets kept in memory. */
  entriesMax?: number;
  /** If a settlement takes longer than this, the shared buckets count as away. */
  settleMaxMs?: number;
}

/** Buckets that all processes share. The README says which bound they keep together. */
export interface SharedLimiter {
  /** False while the shared buckets do not answer: each process then applies the limits to its own requests only. */
  readonly shared: boolean;
  /** The bucket of an id. If the id has one already, `policy` is ignored. */
  bucket(id: string, policy: RatePolicy): SharedBucket;
  /** Settles what is left. Takes no longer than one settlement may. */
  close(): Promise<void>;
}

/** Half of `UNSETTLED_MAX_S`, so that charges of a caller at its full rate are settled before it would have to wait. */
const SETTLE_INTERVAL_MS = 50;
/** A healthy Redis answers in a millisecond. Requests may be waiting for it, so the wait must be short. */
const SETTLE_MAX_MS = 250;
/** So many take half a millisecond of Redis. The rest follows in the next settlement, at once. */
const BUCKETS_PER_SETTLEMENT_MAX = 500;
/** A gateway serves far fewer environments than this; it only bounds memory. */
const ENTRIES_MAX = 10_000;

/**
 * Opens a limiter. A decision waits for a round trip only if more than `unsettledMax` units were allowed since the last
 * one.
 */
export function openSharedLimiter(options: SharedLimiterOptions): SharedLimiter {
  const { now = () => performance.now(), entriesMax = ENTRIES_MAX } = options;
  const settlements = new Settlements(options);
  const buckets = new LRUCache<string, SharedBucket>({ max: entriesMax });
  return {
    get shared() {
      return settlements.shared;
    },
    bucket: (id, policy) => {
      const known = buckets.get(id);
      if (known !== undefined) return known;
      const bucket = new SharedBucket(id, { policy, now, owner: settlements });
      buckets.set(id, bucket);
      return bucket;
    },
    close: () => settlements.close(),
  };
}

/**
 * Reports to the shared buckets what was allowed here: one settlement at a time, for all buckets that have something to
 * report.
 */
class Settlements {
  readonly #options: SharedLimiterOptions;
  // Keeps buckets that the cache may have dropped meanwhile, so that none of their charges is lost.
  readonly #unsettled = new Set<SharedBucket>();
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;
  shared = true;

  constructor(options: SharedLimiterOptions) {
    this.#options = options;
  }

  onCharge(bucket: SharedBucket): void {
    this.#unsettled.add(bucket);
    if (this.#running !== null || this.#closed) return;
    if (this.shared && bucket.isUrgent) void this.#settle();
    else this.#timer ??= setTimeout(() => void this.#settle(), SETTLE_INTERVAL_MS);
  }

  async settled(bucket: SharedBucket): Promise<void> {
    while (this.shared && bucket.isFull) await this.#settle();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    if (this.#unsettled.size > 0) await this.#settle();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #settle(): Promise<void> {
    this.#running ??= this.#settleOnce().finally(() => {
      this.#running = null;
      this.#goOn();
    });
    return this.#running;
  }

  async #settleOnce(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const buckets = [...this.#unsettled].slice(0, BUCKETS_PER_SETTLEMENT_MAX);
    for (const bucket of buckets) this.#unsettled.delete(bucket);
    const charges = buckets.map((bucket) => bucket.toCharge());
    const { balances, settleMaxMs = SETTLE_MAX_MS } = this.#options;
    try {
      const backlogs = await answerWithin(settleMaxMs, balances.charge(charges));
      for (const [place, bucket] of buckets.entries()) bucket.settle(backlogs[place] ?? 0);
      this.#setShared(true, null);
    } catch (fault) {
      for (const bucket of buckets) bucket.discardSent();
      this.#setShared(false, fault);
    }
  }

  /**
   * Starts the next settlement for what was charged during the last one: at once if that cannot wait, else after the
   * interval.
   */
  #goOn(): void {
    if (this.#unsettled.size === 0 || this.#closed) return;
    for (const bucket of this.#unsettled) if (this.shared && bucket.isUrgent) return void this.#settle();
    if (this.shared && this.#unsettled.size >= BUCKETS_PER_SETTLEMENT_MAX) return void this.#settle();
    this.#timer ??= setTimeout(() => void this.#settle(), SETTLE_INTERVAL_MS);
  }

  #setShared(shared: boolean, fault: unknown): void {
    if (this.shared === shared) return;
    this.shared = shared;
    this.#options.onShared?.(shared, fault);
  }
}

/** A process may allow as many units as the policy allows in this time before the other processes must know of them. */
const UNSETTLED_MAX_S = 0.1;

/** Most units that one process may allow before the next answer of the shared bucket. */
export function unsettledMax({ perSecond }: RatePolicy): number {
  return Math.ceil(perSecond * UNSETTLED_MAX_S);
}

/** What a bucket needs of the limiter that owns it. */
interface BucketOwner {
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
  admit(): RateStatus | Promise<RateStatus> {
    return this.isFull ? this.#owner.settled(this).then(() => this.status()) : this.status();
  }

  status(): RateStatus {
    return this.#view.status();
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
    this.#view.setBacklog(backlogMs + this.#unsent * unitMs(this.policy));
  }

  /**
   * Ends a settlement that got no answer. The charge may have been made, so it is not sent again. What is known stays
   * as it is.
   */
  discardSent(): void {
    this.#sent = 0;
  }
}
