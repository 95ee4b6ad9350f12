import type { ErasureFence, ErasureRecords } from './records.ts';
import type { ErasureTarget } from './rows.ts';

/** The store whose scripts keep facts and consents out; `ErasureGuards` of `@playline/people` is one. */
export interface FenceGuard {
  fence(cutoffs: readonly Pick<ErasureFence, 'environmentId' | 'key' | 'cutoffMs'>[]): Promise<void>;
}

/** Fences of erased people, in both stores that keep something out: one for whoever writes rows, one for links and consents. */
export interface Fences {
  /**
   * Raises fences, each unless a later one stands. Safe to repeat.
   *
   * In the column store first: from there the other one is built again when it is lost, so a fence that stood in Redis
   * alone would be forgotten with it.
   * @throws RowsFault, or a fault of the guard; then it may be called again
   */
  raise(fences: readonly ErasureFence[]): Promise<void>;
}

export function createFences(records: Pick<ErasureRecords, 'putFences'>, guard: FenceGuard): Fences {
  return {
    async raise(fences) {
      await records.putFences(fences);
      await guard.fence(fences);
    },
  };
}

/**
 * Cut-offs of everybody who is fenced, each identity once: the column store tells a fence that was raised again several
 * times until a merge has folded it, and the latest holds.
 * @throws RowsFault
 */
export async function readCutoffs(records: Pick<ErasureRecords, 'readFences'>): Promise<ErasureTarget[]> {
  const latest = new Map<string, ErasureTarget>();
  for await (const { environmentId, key, cutoffMs } of records.readFences()) {
    const name = `${environmentId} ${key.toString('latin1')}`;
    if ((latest.get(name)?.cutoffMs ?? Number.NEGATIVE_INFINITY) < cutoffMs)
      latest.set(name, { environmentId, key, cutoffMs });
  }
  return [...latest.values()];
}
