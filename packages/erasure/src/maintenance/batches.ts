/** Temporary targets for searches, and cleanup of targets that crashed processes left behind. */
import { randomBytes } from 'node:crypto';
import type { ErasureRows, ErasureTarget } from '../rows.ts';

/** Targets per batch. The cost of a search hardly depends on the number of targets. */
const TARGETS_MAX = 100_000;
/** Longer than any search. Stale targets are keyed hashes of erased people and must not be kept. */
const STALE_AFTER_MS = 6 * 60 * 60 * 1000;
/** Prefix of search ids. The ids of erasure batches are random. */
const PREFIX = Buffer.from('upkeep');
const TIME_BYTES = 6;

/**
 * Creates the id (16 bytes) of a temporary batch. The id contains its creation time, so that stale batches can be
 * dropped.
 * @param atMs epoch milliseconds
 */
export function newSearchId(atMs: number): Buffer {
  const time = Buffer.alloc(TIME_BYTES);
  time.writeUIntBE(Math.max(0, Math.trunc(atMs)), 0, TIME_BYTES);
  return Buffer.concat([PREFIX, time, randomBytes(16 - PREFIX.length - TIME_BYTES)]);
}

/** Start time of a search in epoch milliseconds, or null for an erasure batch. */
export function searchTimeOf(batchId: Buffer): number | null {
  return batchId.subarray(0, PREFIX.length).equals(PREFIX) ? batchId.readUIntBE(PREFIX.length, TIME_BYTES) : null;
}

interface StaleBatches {
  readonly rows: Pick<ErasureRows, 'readBatches' | 'dropTargets'>;
  readonly wallClockMs: () => number;
  /**
   * Reads the ids (hexadecimal) of batches in progress. Called after the batches are listed because an eraser stores
   * its progress before its targets. If absent, erasure batches are not dropped.
   */
  readonly readActiveBatches?: () => Promise<ReadonlySet<string>>;
}

/**
 * Drops targets that crashed processes left behind: searches after six hours, erasure batches once they are no longer
 * in progress.
 * @returns the number of dropped batches
 * @throws StoreFault, or any error thrown by `readActiveBatches`
 */
export async function dropStaleBatches({ rows, wallClockMs, readActiveBatches }: StaleBatches): Promise<number> {
  const batches = await rows.readBatches();
  const active = await readActiveBatches?.();
  const staleMs = wallClockMs() - STALE_AFTER_MS;
  const stale = batches.filter((batch) => {
    const startedMs = searchTimeOf(batch);
    if (startedMs !== null) return startedMs < staleMs;
    return active !== undefined && !active.has(batch.toString('hex'));
  });
  for (const batch of stale) await rows.dropTargets(batch);
  return stale.length;
}

export interface TargetBatchesOptions {
  readonly rows: Pick<ErasureRows, 'putTargets' | 'dropTargets'>;
  readonly wallClockMs: () => number;
  readonly targetsMax?: number;
}

/** Splits the targets of a search into batches. */
export class TargetBatches {
  readonly #options: TargetBatchesOptions;
  readonly #ids: Buffer[] = [];
  readonly #kept = new Set<Buffer>();
  #pending: ErasureTarget[] = [];

  constructor(options: TargetBatchesOptions) {
    this.#options = options;
  }

  /** Batches whose targets are stored. */
  get ids(): readonly Buffer[] {
    return this.#ids;
  }

  /** @throws StoreFault */
  async add({ environmentId, key, cutoffMs }: ErasureTarget): Promise<void> {
    this.#pending.push({ environmentId, key, cutoffMs });
    if (this.#pending.length >= (this.#options.targetsMax ?? TARGETS_MAX)) await this.flush();
  }

  /** Stores the remaining targets. @throws StoreFault */
  async flush(): Promise<void> {
    const targets = this.#pending;
    if (targets.length === 0) return;
    this.#pending = [];
    const id = newSearchId(this.#options.wallClockMs());
    // Added before the write, which may fail after storing some targets.
    this.#ids.push(id);
    await this.#options.rows.putTargets(id, targets);
  }

  /** Excludes a batch from `drop` because a running mutation needs its targets. */
  keep(id: Buffer): void {
    this.#kept.add(id);
  }

  /** Drops all batches except those passed to `keep`, and continues after a failure. @throws StoreFault */
  async drop(): Promise<void> {
    const dropped = this.#ids.filter((id) => !this.#kept.has(id));
    const outcomes = await Promise.allSettled(dropped.map((id) => this.#options.rows.dropTargets(id)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }
}

/** Runs `work` with batches and drops the batches afterwards. @throws StoreFault, or any error thrown by `work` */
export async function withTargets<T>(
  options: TargetBatchesOptions,
  work: (batches: TargetBatches) => Promise<T>,
): Promise<T> {
  const batches = new TargetBatches(options);
  const result = await work(batches).catch(async (fault: unknown) => {
    // Remaining batches are dropped later as stale.
    await batches.drop().catch(() => {});
    throw fault;
  });
  await batches.drop();
  return result;
}
