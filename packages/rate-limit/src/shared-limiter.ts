import { answerWithin } from '@playline/stores';
import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, unitMs } from './admit.ts';
import { Bucket, type Clock } from './bucket.ts';

/** Units that a process has charged to a bucket since its last settlement. */
export interface Charge {
  readonly id: string;
  /** Time in which the policy refills the charged units; 0 only reads the balance. */
  readonly costMs: number;
}

export interface SharedBalances {
  /**
   * Charges buckets and returns the milliseconds until each bucket is full.
   * @throws if the store does not respond; the charges may have been applied
   */
  charge(charges: readonly Charge[]): Promise<number[]>;
}

export interface SharedLimiterOptions {
  balances: SharedBalances;
  /** Called with false and the error when the shared buckets become unavailable, and with true when they recover. */
  onShared?: (shared: boolean, fault: unknown) => void;
  now?: Clock;
  entriesMax?: number;
  settleMaxMs?: number;
}

/** Buckets that all processes share, with the upper bound documented in the README. */
export interface SharedLimiter {
  /** False while the shared buckets do not respond and this process applies the limits locally. */
  readonly shared: boolean;
  /** Returns the bucket for an id. `policy` is used only to create the bucket. */
  bucket(id: string, policy: RatePolicy): SharedBucket;
  /** Settles the remaining charges, with the same timeout as other settlements. */
  close(): Promise<void>;
}

/** Half of `UNSETTLED_MAX_S`, so that callers within their rate never wait. */
const SETTLE_INTERVAL_MS = 50;
/** A healthy Redis responds within a millisecond. */
const SETTLE_MAX_MS = 250;
const BUCKETS_PER_SETTLEMENT_MAX = 500;
const ENTRIES_MAX = 10_000;

/** Opens a limiter whose decisions wait for a round trip only above `unsettledMax` unsettled units. */
export function openSharedLimiter(options: SharedLimiterOptions): SharedLimiter {
  const { now = () => performance.now(), entriesMax = ENTRIES_MAX } = options;
  const settlements = new Settlements(options);
  const buckets = new LRUCache<string, SharedBucket>({ max: entriesMax });
  return {
    get shared() {
      return settlements.shared;
    },
    bucket: (id, policy) => {
      const existing = buckets.get(id);
      if (existing !== undefined) return existing;
      const bucket = new SharedBucket(id, { policy, now, owner: settlements });
      buckets.set(id, bucket);
      return bucket;
    },
    close: () => settlements.close(),
  };
}

/** Sends this process's charges, one settlement at a time. */
class Settlements {
  readonly #options: SharedLimiterOptions;
  // Includes buckets evicted from the cache, so that no charge is lost.
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
    while (this.shared && bucket.mustSettle) await this.#settle();
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
      this.#settleNext();
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
      for (const [index, bucket] of buckets.entries()) bucket.settle(backlogs[index] ?? 0);
      this.#setShared(true, null);
    } catch (fault) {
      for (const bucket of buckets) bucket.discardSent();
      this.#setShared(false, fault);
    }
  }

  /** Settles charges that were made during the last settlement. */
  #settleNext(): void {
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

/** Before a process must settle, it may charge the units that are refilled in this time. */
const UNSETTLED_MAX_S = 0.1;

/** Returns the maximum number of units that a process charges without a response from the shared bucket. */
export function unsettledMax({ perSecond }: RatePolicy): number {
  return Math.ceil(perSecond * UNSETTLED_MAX_S);
}

/** Tracks a shared bucket's last known balance and this process's charges since then, to decide without waiting. */
export class SharedBucket {
  readonly #id: string;
  readonly #view: Bucket;
  readonly #owner: Settlements;
  readonly #unsettledMax: number;
  /** Units charged since the last settlement started. */
  #unsent = 0;
  /** Units in the current settlement. */
  #sent = 0;

  constructor(id: string, { policy, now, owner }: { policy: RatePolicy; now: Clock; owner: Settlements }) {
    this.#id = id;
    this.#view = new Bucket(policy, now);
    this.#owner = owner;
    this.#unsettledMax = unsettledMax(policy);
  }

  get policy(): RatePolicy {
    return this.#view.policy;
  }

  /** True if the next request must wait for a settlement. */
  get mustSettle(): boolean {
    return this.#sent + this.#unsent >= this.#unsettledMax;
  }

  get isUrgent(): boolean {
    return this.#unsent * 2 >= this.#unsettledMax;
  }

  /** Returns a promise only if the bucket must be settled first. */
  admit(): RateStatus | Promise<RateStatus> {
    return this.mustSettle ? this.#owner.settled(this).then(() => this.status()) : this.status();
  }

  status(): RateStatus {
    return this.#view.status();
  }

  charge(units: number): void {
    this.#view.charge(units);
    this.#unsent += units;
    this.#owner.onCharge(this);
  }

  toCharge(): Charge {
    this.#sent = this.#unsent;
    this.#unsent = 0;
    return { id: this.#id, costMs: this.#sent * unitMs(this.policy) };
  }

  /** Completes a settlement with the shared backlog, which includes the sent charge. */
  settle(backlogMs: number): void {
    this.#sent = 0;
    this.#view.setBacklog(backlogMs + this.#unsent * unitMs(this.policy));
  }

  /** Completes a settlement that received no response. The charge is not resent, because it may have been applied. */
  discardSent(): void {
    this.#sent = 0;
  }
}
