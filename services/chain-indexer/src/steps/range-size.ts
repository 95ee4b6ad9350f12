import { type BlockRange, type ChainNode, NodeFault, type ReadBlocks, readRange } from '@playline/chain';

const GROWTH = 1.25;
/** One late answer may be a moment's trouble of the node; two mean that the range takes too long. */
const LATES_TO_HALVE = 2;
/** Trying again may cost the time of two late answers. */
const LATE_REMEMBERED_MS = 600_000;

/** How many blocks to request from a node at once: fewer when that is too much, and more again when it works. */
export class RangeSize {
  private readonly most: number;
  private readonly nowMs: () => number;
  private size: number;
  private requested = Number.POSITIVE_INFINITY;
  /** Late answers since a range was last read. */
  private lates = 0;
  private lateAtMs = Number.NEGATIVE_INFINITY;
  /** Maximum size after a late answer, until that answer is forgotten. */
  private inTime = Number.POSITIVE_INFINITY;

  /** @param most blocks at once @param nowMs a monotonic clock */
  constructor(most: number, nowMs: () => number) {
    this.most = most;
    this.nowMs = nowMs;
    this.size = most;
  }

  get blocks(): number {
    return this.size;
  }

  /** True when no smaller range than the last one can be requested. */
  get isSmallest(): boolean {
    return Math.min(this.size, this.requested) === 1;
  }

  /** Notes how many blocks are requested: at the end of a chain fewer than the size allows. */
  request(blocks: number): void {
    this.requested = blocks;
  }

  halve(): void {
    this.size = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
  }

  /**
   * Notes that the answer about the requested blocks was late, or was cut. No node says in that case that they are too
   * many, and the same request would fail again.
   * @returns whether to treat it as too much
   */
  noteLate(): boolean {
    this.lates++;
    if (this.lates < LATES_TO_HALVE) return false;
    this.inTime = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
    this.lateAtMs = this.nowMs();
    return true;
  }

  /** Notes that this many blocks were read. */
  pass(blocks: number): void {
    this.lates = 0;
    if (blocks < this.size) return;
    const isRemembered = this.nowMs() - this.lateAtMs < LATE_REMEMBERED_MS;
    const most = isRemembered ? Math.min(this.most, this.inTime) : this.most;
    this.size = Math.min(most, Math.ceil(this.size * GROWTH));
  }
}

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
  size.request(range.to - range.from + 1);
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
  return isAlike && size.noteLate();
}

const answersSmall = (node: ChainNode): Promise<boolean> =>
  node.chainId().then(
    () => true,
    () => false,
  );
