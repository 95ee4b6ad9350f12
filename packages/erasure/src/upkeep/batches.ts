import { randomBytes } from 'node:crypto';
import type { ErasureRows, ErasureTarget } from '../rows.ts';

/** Of one batch. A look at the tables costs nearly the same for one and for many: a hundred thousand take a second more. */
const TARGETS_MAX = 100_000;
/** No look takes this long. One that was killed has left keyed hashes of people who are erased, or soon will be. */
const STALE_AFTER_MS = 6 * 60 * 60 * 1000;
/** First bytes of the ids of looks. Ids of batches that are erased are random. */
const TAG = Buffer.from('upkeep');
const TIME_BYTES = 6;

/**
 * Creates the id of a batch that is recorded nowhere: one for a search, or the copy of another batch. The id contains its
 * time, so that it is dropped when it is old, and not while it is used.
 * @param atMs epoch milliseconds
 * @returns 16 bytes
 */
export function newSearchId(atMs: number): Buffer {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeUIntBE(Math.max(0, Math.trunc(atMs)), 0, TIME_BYTES);
  return Buffer.concat([TAG, time, randomBytes(16 - TAG.length - TIME_BYTES)]);
}

/** When a look was started, in epoch milliseconds; null for a batch that is being erased. */
export function searchTimeOf(batchId: Buffer): number | null {
  return batchId.subarray(0, TAG.length).equals(TAG) ? batchId.readUIntBE(TAG.length, TIME_BYTES) : null;
}

export interface StaleBatches {
  readonly rows: Pick<ErasureRows, 'readBatches' | 'dropTargets'>;
  readonly wallClockMs: () => number;
  /**
   * Batches that are being erased, their ids in hexadecimal: others are dropped, but for looks. Asked behind the list of
   * batches, so an eraser notes its batch before it puts targets. Without it batches of erasers are left alone.
   */
  readonly readWorkedOn?: () => Promise<ReadonlySet<string>>;
}

/**
 * Drops targets that a killed process has left: of looks when they are older than six hours, of other batches when
 * nobody works on them.
 * @returns how many batches were dropped
 * @throws StoreFault, or what `readWorkedOn` throws
 */
export async function dropStaleBatches({ rows, wallClockMs, readWorkedOn }: StaleBatches): Promise<number> {
  const batches = await rows.readBatches();
  const workedOn = await readWorkedOn?.();
  const staleMs = wallClockMs() - STALE_AFTER_MS;
  const stale = batches.filter((batch) => {
    const madeAtMs = searchTimeOf(batch);
    if (madeAtMs !== null) return madeAtMs < staleMs;
    return workedOn !== undefined && !workedOn.has(batch.toString('hex'));
  });
  for (const batch of stale) await rows.dropTargets(batch);
  return stale.length;
}

export interface TargetBatchesOptions {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'dropTargets'>;
  readonly wallClockMs: () => number;
  readonly targetsMax?: number;
}

/** Targets for a look at everybody who was ever erased, in as many batches as they need. */
export class TargetBatches {
  readonly #options: TargetBatchesOptions;
  readonly #ids: Buffer[] = [];
  readonly #kept = new Set<Buffer>();
  #waiting: ErasureTarget[] = [];

  constructor(options: TargetBatchesOptions) {
    this.#options = options;
  }

  /** Batches that have their targets. */
  get ids(): readonly Buffer[] {
    return this.#ids;
  }

  /** @throws StoreFault */
  async add({ environmentId, key, cutoffMs }: ErasureTarget): Promise<void> {
    this.#waiting.push({ environmentId, key, cutoffMs });
    if (this.#waiting.length >= (this.#options.targetsMax ?? TARGETS_MAX)) await this.flush();
  }

  /** Puts what waits for its batch to be full. @throws StoreFault */
  async flush(): Promise<void> {
    const targets = this.#waiting;
    if (targets.length === 0) return;
    this.#waiting = [];
    const id = newSearchId(this.#options.wallClockMs());
    // Remembered before it is put: a fault may come after some targets were written.
    this.#ids.push(id);
    await this.#options.rows.putTargets(id, targets);
  }

  /** Leaves one of `ids` until it is stale: a change that the store is still making needs its targets. */
  keep(id: Buffer): void {
    this.#kept.add(id);
  }

  /** Drops all of them but the kept ones, also behind one that cannot be dropped. @throws StoreFault */
  async drop(): Promise<void> {
    const left = this.#ids.filter((id) => !this.#kept.has(id));
    const outcomes = await Promise.allSettled(left.map((id) => this.#options.rows.dropTargets(id)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

/** Gives batches to `work` and drops behind it those that it does not keep, whatever becomes of it. @throws what `work` throws, or StoreFault */
export async function withTargets<T>(
  options: TargetBatchesOptions,
  work: (batches: TargetBatches) => Promise<T>,
): Promise<T> {
  const batches = new TargetBatches(options);
  let result: T;
  try {
    result = await work(batches);
  } catch (fault) {
    // The fault of `work` is thrown. What cannot be dropped now is dropped later as stale.
    await batches.drop().catch(() => {});
    throw fault;
  }
  await batches.drop();
  return result;
}
