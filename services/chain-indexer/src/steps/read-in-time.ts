import { type BlockRange, type ChainNode, NodeFault, type ReadBlocks, readRange } from '@playline/chain';
import type { RangeSize } from './range-size.ts';

/** The range was too large for the node, and the next one will be smaller. The node is not at fault. */
export class SmallerRangeFault extends Error {
  override readonly name = 'SmallerRangeFault';
  override readonly cause: NodeFault;

  constructor(cause: NodeFault) {
    super(cause.message);
    this.cause = cause;
  }
}

/**
 * Reads a range of blocks. A node that repeatedly does not return a large one in time, or cuts the connection, but
 * answers something small, is treated like one that asks for less.
 * @param size of this node's ranges
 * @throws SmallerRangeFault when less can be requested, and may work; NodeFault as `readRange`
 */
export async function readInTime(node: ChainNode, range: BlockRange, size: RangeSize): Promise<ReadBlocks> {
  size.ask(range.to - range.from + 1);
  try {
    return await readRange(node, range);
  } catch (fault) {
    if (!(fault instanceof NodeFault) || size.isSmallest || !(await isTooMuch(node, fault, size))) throw fault;
    size.halve();
    throw new SmallerRangeFault(fault);
  }
}

async function isTooMuch(node: ChainNode, fault: NodeFault, size: RangeSize): Promise<boolean> {
  if (fault.kind === 'too-much') return true;
  // One that is away fails at once whatever is requested. A late one has answered about the horizon before.
  const isAlike = fault.kind === 'late' || (fault.kind === 'unreachable' && (await answersSmall(node)));
  return isAlike && size.tellLate();
}

const answersSmall = (node: ChainNode): Promise<boolean> =>
  node.chainId().then(
    () => true,
    () => false,
  );
