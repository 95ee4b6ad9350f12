import type { ErasureFence, ErasureRecords } from './records.ts';

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
