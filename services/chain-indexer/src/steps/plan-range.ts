import type { BlockName, BlockRange } from '@playline/chain';
import type { IndexProgressRecord } from '@playline/contracts';

export interface RangePlan extends Omit<BlockRange, 'blocks' | 'hasBlooms'> {
  /** Logs of the first block before this one are already published. */
  readonly firstLog: number;
}

export interface PlanOptions {
  readonly progress: IndexProgressRecord | null;
  /** The last final block. */
  readonly final: BlockName;
  /** First block to index when nothing is indexed yet. */
  readonly start: number;
  /** Maximum number of blocks. */
  readonly size: number;
}

const toName = ({ block, hash }: IndexProgressRecord): BlockName => ({
  number: block,
  hash: `0x${hash.toString('hex')}`,
});

/**
 * Plans the next range, of final blocks only.
 * @returns null when everything final is indexed
 */
export function planRange({ progress, final, start, size }: PlanOptions): RangePlan | null {
  const isPartial = progress !== null && progress.nextLog !== null;
  const from = progress === null ? start : isPartial ? progress.block : progress.block + 1;
  if (from > final.number) return null;
  const to = Math.min(from + size - 1, final.number);
  const after = progress === null || isPartial ? null : toName(progress);
  const holds = isPartial ? [toName(progress), final] : [final];
  return { from, to, after, holds, firstLog: progress?.nextLog ?? 0 };
}
