import type { ActivityRow } from './rows.ts';
import type { ActivityStore, Supersession } from './store.ts';

/**
 * Finds the versions that a block supersedes: for each of its rows that is not the first version of its activity, the
 * version before. That one may be in the block itself or in an earlier block. The block's own rows may be stored
 * already, by an earlier attempt.
 * @param rows of one partition, in the order of `updatedAt`; all blocks of the partition before them are written
 * @param lastBefore see `ActivityStore`
 */
export async function findSupersessions(
  rows: readonly ActivityRow[],
  lastBefore: ActivityStore['lastBefore'],
): Promise<Supersession[]> {
  const [first] = rows;
  if (first === undefined) return [];
  const found: Supersession[] = [];
  for (const [chain, own] of Map.groupBy(rows, (row) => row.chain)) {
    const last = new Map(await lastBefore(first.updatedAt, chain, [...new Set(own.map(({ id }) => id))]));
    for (const row of own) {
      const updatedAt = last.get(row.id);
      last.set(row.id, row.updatedAt);
      // A copy of a row supersedes nothing.
      if (updatedAt === undefined || updatedAt >= row.updatedAt) continue;
      const { id, type, contractAddress, indexedAt, updatedAt: supersededAt } = row;
      found.push({ chain, id, type, contractAddress, indexedAt, updatedAt, supersededAt });
    }
  }
  return found;
}
