import { LRUCache } from 'lru-cache';
import type { SharedBalances } from './balances.ts';
import type { Clock } from './bucket.ts';
import type { RatePolicy } from './policy.ts';
import { SharedBucket } from './shared-bucket.ts';

export { type SharedBucket, unsettledMax } from './shared-bucket.ts';

export interface SharedLimiterOptions {
  balances: SharedBalances;
  /** Told when the shared buckets stop answering (with the fault) and when they answer again. */
  onShared?: (shared: boolean, fault: unknown) => void;
  now?: Clock;
  /** Buckets kept at most. */
  entriesMax?: number;
  /** How long a settlement may take before the shared buckets count as away. */
  settleMaxMs?: number;
}

/** Buckets that all processes have in common; see the README for what holds between them. */
export interface SharedLimiter {
  /** False while the shared buckets do not answer: each process then holds the limits by itself. */
  readonly shared: boolean;
  /** The bucket of an id; a policy given later for the same id is ignored. */
  bucket(id: string, policy: RatePolicy): SharedBucket;
  /** Settles what is left, within the bound of one settlement. */
  close(): Promise<void>;
}

/** Half of `UNSETTLED_MAX_S`, so that a caller at its full rate is settled before it has to wait. */
const SETTLE_INTERVAL_MS = 50;
/** A healthy answer takes a millisecond. Requests may wait for it, so it must not take long. */
const SETTLE_MAX_MS = 250;
/** Half a millisecond of Redis at a time; the others follow at once. */
const BUCKETS_PER_SETTLEMENT_MAX = 500;
/** A gateway serves far fewer environments than this; it only bounds memory. */
const ENTRIES_MAX = 10_000;

/** Opens a limiter whose decisions never wait for a round trip unless more than `unsettledMax` came in since the last. */
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

/** Tells the shared buckets what was let in here: one settlement at a time, of all buckets that have something to tell. */
class Settlements {
  readonly #options: SharedLimiterOptions;
  // Holds what the cache may have pushed out meanwhile: no charge is lost with it.
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
      const backlogs = await within(balances.charge(charges), settleMaxMs);
      for (const [place, bucket] of buckets.entries()) bucket.settle(backlogs[place] ?? 0);
      this.#setShared(true, null);
    } catch (fault) {
      for (const bucket of buckets) bucket.giveUp();
      this.#setShared(false, fault);
    }
  }

  /** What was charged during a settlement: at once when it cannot wait, else after the interval. */
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

async function within<T>(work: Promise<T>, boundMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${boundMs} ms`)), boundMs);
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}
