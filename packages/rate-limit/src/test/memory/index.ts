import type { SharedBalances } from '../../shared-limiter.ts';

/** In-memory shared buckets for tests and experiments. */
export function createMemoryBalances(now: () => number = () => performance.now()): SharedBalances {
  const fullAt = new Map<string, number>();
  return {
    charge: async (charges) => {
      const nowMs = now();
      return charges.map(({ id, costMs }) => {
        const due = Math.max(fullAt.get(id) ?? 0, nowMs) + costMs;
        fullAt.set(id, due);
        return due - nowMs;
      });
    },
  };
}
