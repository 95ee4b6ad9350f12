import { type BlockRange, type ChainNode, NodeFault, type ReadBlocks, readRange } from '@playline/chain';
import type { RangeSize } from './range-size.ts';

/**
 * Reads a range of blocks. A repeated late answer counts as one that would be too large.
 * @throws NodeFault as `readRange`; `too-much` also when the node was late with such a range before
 */
export async function readInTime(node: ChainNode, range: BlockRange, size: RangeSize): Promise<ReadBlocks> {
  size.ask(range.to - range.from + 1);
  try {
    return await readRange(node, range);
  } catch (fault) {
    const isLate = fault instanceof NodeFault && fault.kind === 'late';
    if (isLate && !size.isSmallest && size.tellLate())
      throw new NodeFault('too-much', `it has timed out twice on a range of up to ${size.blocks} blocks`);
    throw fault;
  }
}
