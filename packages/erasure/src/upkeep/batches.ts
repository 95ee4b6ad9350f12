/** Temporary targets of searches, and the removal of those that dead processes left. */
import { randomBytes } from 'node:crypto';
import type { ErasureRows, ErasureTarget } from '../rows.ts';

/** Targets of one batch. A search costs nearly the same for one and for many. */
const TARGETS_MAX = 100_000;
/** No search takes this long. Targets of a killed one are keyed hashes of erased people. */
const STALE_AFTER_MS = 6 * 60 * 60 * 1000;
/** First bytes of the ids of searches. Ids of erasure batches are random. */
const TAG = Buffer.from('upkeep');
const TIME_BYTES = 6;

/**
 * Creates the id of a batch without progress: of a search, or of a copy. It contains its time, and is dropped when stale.
 * @param atMs epoch milliseconds
 * @returns 16 bytes
 */
export function newSearchId(atMs: number): Buffer {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeUIntBE(Math.max(0, Math.trunc(atMs)), 0, TIME_BYTES);
  return Buffer.concat([TAG, time, randomBytes(16 - TAG.length - TIME_BYTES)]);
}

/** Epoch milliseconds of a search's start; null for a batch of an erasure. */
export function searchTimeOf(batchId: Buffer): number | null {
  return batchId.subarray(0, TAG.length).equals(TAG) ? batchId.readUIntBE(TAG.length, TIME_BYTES) : null;
}

interface StaleBatches {
  readonly rows: Pick<ErasureRows, 'readBatches' | 'dropTargets'>;
  readonly wallClockMs: () => number;
  /**
   * Ids (hexadecimal) of batches that are being erased, read after the list of batches, because an eraser stores its
   * progress before the targets. Without it, batches of erasers are left alone.
   */
  readonly readWorkedOn?: () => Promise<ReadonlySet<string>>;
}

/**
 * Drops targets of killed processes: of searches after six hours, of other batches when no eraser works on them.
 * @returns the number of dropped batches
 * @throws StoreFault, or what `readWorkedOn` throws
 */
export async function dropStaleBatches({ rows, wallClockMs, readWorkedOn }: StaleBatches): Promise<number> {
  const batches = await rows.readBatches();
  const workedOn = await readWorkedOn?.();
  const staleMs = wallClockMs() - STALE_AFTER_MS;
  const stale = batches.filter((batch) => {
    const startedMs = searchTimeOf(batch);
    if (startedMs !== null) return startedMs < staleMs;
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

/** Targets of a search, in as many batches as they need. */
export class TargetBatches {
  readonly #options: TargetBatchesOptions;
  readonly #ids: Buffer[] = [];
  readonly #kept = new Set<Buffer>();
  #waiting: ErasureTarget[] = [];

  constructor(options: TargetBatchesOptions) {
    this.#options = options;
  }

  /** Batches whose targets are stored. */
  get ids(): readonly Buffer[] {
    return this.#ids;
  }

  /** @throws StoreFault */
  async add({ environmentId, key, cutoffMs }: ErasureTarget): Promise<void> {
    this.#waiting.push({ environmentId, key, cutoffMs });
    if (this.#waiting.length >= (this.#options.targetsMax ?? TARGETS_MAX)) await this.flush();
  }

  /** Stores the targets that are not in a batch yet. @throws StoreFault */
  async flush(): Promise<void> {
    const targets = this.#waiting;
    if (targets.length === 0) return;
    this.#waiting = [];
    const id = newSearchId(this.#options.wallClockMs());
    // Before the put, which may fail after it has stored some targets.
    this.#ids.push(id);
    await this.#options.rows.putTargets(id, targets);
  }

  /** Keeps a batch until it is stale, because a running mutation needs its targets. */
  keep(id: Buffer): void {
    this.#kept.add(id);
  }

  /** Drops all other batches, even if one of them cannot be dropped. @throws StoreFault */
  async drop(): Promise<void> {
    const dropped = this.#ids.filter((id) => !this.#kept.has(id));
    const outcomes = await Promise.allSettled(dropped.map((id) => this.#options.rows.dropTargets(id)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

/** Runs `work` with batches and drops them afterwards. @throws what `work` throws, or StoreFault */
export async function withTargets<T>(
  options: TargetBatchesOptions,
  work: (batches: TargetBatches) => Promise<T>,
): Promise<T> {
  const batches = new TargetBatches(options);
  const result = await work(batches).catch(async (fault: unknown) => {
    // What cannot be dropped here is dropped later as stale.
    await batches.drop().catch(() => {});
    throw fault;
  });
  await batches.drop();
  return result;
}
