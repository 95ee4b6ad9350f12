import { inBatches } from '@playline/stores';
import type { ErasureFence, ErasureRecords } from './records.ts';
import type { ErasureTarget } from './rows.ts';

/** The store whose scripts refuse facts and consents; `ErasureGuards` of `@playline/people` fits. */
export interface FenceGuard {
  fence(cutoffs: readonly ErasureTarget[]): Promise<void>;
}

/** The same store, with the removal of what a fence should have kept out. */
export interface FenceEnforcer {
  enforce(cutoffs: readonly ErasureTarget[]): Promise<{ readonly links: number; readonly consents: number }>;
}

/**
 * Fences of erased people, in both stores that refuse something: one for writers of rows, one for links and consents.
 */
export interface Fences {
  /**
   * Sets fences; a later fence of an identity stays. Safe to repeat.
   *
   * The column store comes first. If Redis is lost, its fences are restored from there, so a fence in Redis alone would
   * be lost with it.
   * @throws StoreFault, or a fault of the guard: then it may be called again
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

/** Of one call: some milliseconds of Redis. */
const ENFORCED_A_CALL = 1_000;

/**
 * Sets fences in the store of links and consents again, and removes there what they should have kept out. Streams the
 * fences, so their number does not matter.
 * @returns what was removed, by environment
 * @throws a fault of the source or of the store: then it may be called again
 */
export async function enforceFences(
  store: FenceEnforcer,
  fences: AsyncIterable<ErasureTarget>,
): Promise<ReadonlyMap<string, { links: number; consents: number }>> {
  const removed = new Map<string, { links: number; consents: number }>();
  for await (const batch of inBatches(fences, ENFORCED_A_CALL))
    for (const [environmentId, own] of Map.groupBy(batch, (fence) => fence.environmentId)) {
      const { links, consents } = await store.enforce(own);
      const sum = removed.get(environmentId) ?? { links: 0, consents: 0 };
      removed.set(environmentId, { links: sum.links + links, consents: sum.consents + consents });
    }
  return removed;
}

/**
 * Cut-offs of everybody who is fenced, each identity once. Until a merge has folded them, the column store returns a
 * fence that was raised again several times; the latest cut-off counts.
 * @throws StoreFault
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
