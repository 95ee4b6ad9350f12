import { answerWithin } from '@playline/stores';
import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, unitMs } from './admit.ts';
import { Bucket, type Clock } from './bucket.ts';

/** What one process has charged since its last settlement. */
export interface Charge {
  readonly id: string;
  /** Milliseconds in which the policy refills the charged units; 0 only reads. */
  readonly costMs: number;
}

export interface SharedBalances {
  /**
   * @returns the milliseconds until each bucket is full
   * @throws when the store does not respond; it may have charged
   */
  charge(charges: readonly Charge[]): Promise<number[]>;
}

export interface SharedLimiterOptions {
  balances: SharedBalances;
  /** Called when the shared buckets become unavailable (with the fault), and when they are available again. */
  onShared?: (shared: boolean, fault: unknown) => void;
  now?: Clock;
  entriesMax?: number;
  settleMaxMs?: number;
}

/** Buckets that all processes share, within the bound documented in the README. */
export interface SharedLimiter {
  /** False while the shared buckets do not respond: this process then applies the limits alone. */
  readonly shared: boolean;
  /** `policy` is ignored for a known id. */
  bucket(id: string, policy: RatePolicy): SharedBucket;
  /** Settles the remaining charges, with the time limit of one settlement. */
  close(): Promise<void>;
}

/** Half of `UNSETTLED_MAX_S`: a caller at its full rate never waits. */
const SETTLE_INTERVAL_MS = 50;
/** A healthy Redis responds in a millisecond. */
const SETTLE_MAX_MS = 250;
const BUCKETS_PER_SETTLEMENT_MAX = 500;
const ENTRIES_MAX = 10_000;

/** Decisions wait for a round trip only while more than `unsettledMax` units are unsettled. */
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

/** Sends the charges of this process, one settlement at a time. */
class Settlements {
  readonly #options: SharedLimiterOptions;
  // Includes buckets that the cache has dropped, so that no charge is lost.
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

  /** Settles the charges made during the last settlement. */
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

/** A process may allow this much before it settles. */
const UNSETTLED_MAX_S = 0.1;

/** Maximum units that a process allows without a response of the shared bucket. */
export function unsettledMax({ perSecond }: RatePolicy): number {
  return Math.ceil(perSecond * UNSETTLED_MAX_S);
}

/** The last known balance of a shared bucket and all charges of this process since. Decides without waiting. */
export class SharedBucket {
  readonly #id: string;
  readonly #view: Bucket;
  readonly #owner: Settlements;
  readonly #unsettledMax: number;
  /** Units charged since the last settlement began. */
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

  /** True when a settlement must come before the next request. */
  get isFull(): boolean {
    return this.#sent + this.#unsent >= this.#unsettledMax;
  }

  get isUrgent(): boolean {
    return this.#unsent * 2 >= this.#unsettledMax;
  }

  /** Returns a promise only while too much is unsettled. */
  admit(): RateStatus | Promise<RateStatus> {
    return this.isFull ? this.#owner.settled(this).then(() => this.status()) : this.status();
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

  /** Ends a settlement with the shared backlog, which includes the sent charge. */
  settle(backlogMs: number): void {
    this.#sent = 0;
    this.#view.setBacklog(backlogMs + this.#unsent * unitMs(this.policy));
  }

  /** Ends a settlement without a response. The charge may have been applied, so it is not sent again. */
  discardSent(): void {
    this.#sent = 0;
  }
}
