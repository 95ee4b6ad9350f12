import { answerWithin } from '@playline/stores';
import { LRUCache } from 'lru-cache';
import { type RatePolicy, type RateStatus, unitMs } from './admit.ts';
import { Bucket, type Clock } from './bucket.ts';

/** What one process has allowed since its last report. */
export interface Charge {
  readonly id: string;
  /** Milliseconds in which the policy allows as many units again; 0 only reads. */
  readonly costMs: number;
}

export interface SharedBalances {
  /** @returns the milliseconds until each bucket is full @throws when the store does not answer; it may have charged */
  charge(charges: readonly Charge[]): Promise<number[]>;
}

export interface SharedLimiterOptions {
  balances: SharedBalances;
  /** Called when the shared buckets stop answering (with the fault), and when they answer again. */
  onShared?: (shared: boolean, fault: unknown) => void;
  now?: Clock;
  entriesMax?: number;
  settleMaxMs?: number;
}

/** Buckets that all processes share, within the bound of the README. */
export interface SharedLimiter {
  /** False while the shared buckets do not answer: this process then applies the limits alone. */
  readonly shared: boolean;
  /** `policy` is ignored for a known id. */
  bucket(id: string, policy: RatePolicy): SharedBucket;
  /** Settles what is left, within the time of one settlement. */
  close(): Promise<void>;
}

/** Half of `UNSETTLED_MAX_S`: a caller at its full rate never waits. */
const SETTLE_INTERVAL_MS = 50;
/** A healthy Redis answers in a millisecond. */
const SETTLE_MAX_MS = 250;
const BUCKETS_PER_SETTLEMENT_MAX = 500;
const ENTRIES_MAX = 10_000;

/** A decision waits for a round trip only when more than `unsettledMax` units are unsettled. */
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

/** Reports what was allowed here, one settlement at a time. */
class Settlements {
  readonly #options: SharedLimiterOptions;
  // Also buckets that the cache has dropped, so that no charge is lost.
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

  /** Settles what was charged during the last settlement. */
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

/** A process may allow this much without the others knowing. */
const UNSETTLED_MAX_S = 0.1;

/** Most units that a process allows without an answer of the shared bucket. */
export function unsettledMax({ perSecond }: RatePolicy): number {
  return Math.ceil(perSecond * UNSETTLED_MAX_S);
}

/** The last answer of a shared bucket and everything allowed here since. Decides without waiting. */
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

  /** Nothing more may be allowed before a settlement. */
  get isFull(): boolean {
    return this.#sent + this.#unsent >= this.#unsettledMax;
  }

  get isUrgent(): boolean {
    return this.#unsent * 2 >= this.#unsettledMax;
  }

  /** A promise only while too much is unsettled. */
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

  /** Ends a settlement with the shared backlog, which contains what was sent. */
  settle(backlogMs: number): void {
    this.#sent = 0;
    this.#view.setBacklog(backlogMs + this.#unsent * unitMs(this.policy));
  }

  /** Ends a settlement without an answer. The charge may have been made, so it is not sent again. */
  discardSent(): void {
    this.#sent = 0;
  }
}
