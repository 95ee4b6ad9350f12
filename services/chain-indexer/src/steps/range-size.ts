import { type BlockRange, type ChainNode, NodeFault, type ReadBlocks, readRange } from '@playline/chain';

const GROWTH = 1.25;
/** One late response may be a momentary problem. */
const LATES_TO_HALVE = 2;
const LATE_REMEMBERED_MS = 600_000;

/** Blocks per request: fewer after a refusal, more after successes. */
export class RangeSize {
  private readonly most: number;
  private readonly nowMs: () => number;
  private size: number;
  private requested = Number.POSITIVE_INFINITY;
  /** Late responses since a range was last read. */
  private lates = 0;
  private lateAtMs = Number.NEGATIVE_INFINITY;
  /** Largest size after a late response. */
  private inTime = Number.POSITIVE_INFINITY;

  /** @param nowMs monotonic */
  constructor(most: number, nowMs: () => number) {
    this.most = most;
    this.nowMs = nowMs;
    this.size = most;
  }

  get blocks(): number {
    return this.size;
  }

  get isSmallest(): boolean {
    return Math.min(this.size, this.requested) === 1;
  }

  /** May be fewer than the size allows. */
  request(blocks: number): void {
    this.requested = blocks;
  }

  halve(): void {
    this.size = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
  }

  /** A late or truncated response does not report the cause. @returns whether to treat it as too much */
  noteLate(): boolean {
    this.lates++;
    if (this.lates < LATES_TO_HALVE) return false;
    this.inTime = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
    this.lateAtMs = this.nowMs();
    return true;
  }

  pass(blocks: number): void {
    this.lates = 0;
    if (blocks < this.size) return;
    const isRemembered = this.nowMs() - this.lateAtMs < LATE_REMEMBERED_MS;
    const most = isRemembered ? Math.min(this.most, this.inTime) : this.most;
    this.size = Math.min(most, Math.ceil(this.size * GROWTH));
  }
}

/** The next range must be smaller. The node is not at fault. */
export class SmallerRangeFault extends Error {
  override readonly name = 'SmallerRangeFault';
  override readonly cause: NodeFault;

  constructor(cause: NodeFault) {
    super(cause.message);
    this.cause = cause;
  }
}

/**
 * A node that is repeatedly late or closes the connection, but serves a small request, gets a smaller range. @throws
 * SmallerRangeFault when less may work; NodeFault as `readRange`
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
  // An unavailable node fails immediately. A late node has returned the horizon before.
  const isSimilar = fault.kind === 'late' || (fault.kind === 'unreachable' && (await servesSmall(node)));
  return isSimilar && size.noteLate();
}

const servesSmall = (node: ChainNode): Promise<boolean> =>
  node.chainId().then(
    () => true,
    () => false,
  );
