import { type BlockRange, type ChainNode, NodeFault, type ReadBlocks, readRange } from '@playline/chain';

const GROWTH = 1.25;
/** Several, because one late response may be a transient problem. */
const LATE_RESPONSES_TO_HALVE = 2;
const LATE_REMEMBERED_MS = 600_000;

/** The number of blocks per request. Smaller after a refusal, larger after successes. */
export class RangeSize {
  private readonly sizeMax: number;
  private readonly nowMs: () => number;
  private size: number;
  private requested = Number.POSITIVE_INFINITY;
  /** Number of late responses since a range was last read. */
  private lateResponses = 0;
  private lateAtMs = Number.NEGATIVE_INFINITY;
  /** The largest size to use after a late response. */
  private sizeAfterLate = Number.POSITIVE_INFINITY;

  /** @param nowMs returns monotonic time */
  constructor(sizeMax: number, nowMs: () => number) {
    this.sizeMax = sizeMax;
    this.nowMs = nowMs;
    this.size = sizeMax;
  }

  get blocks(): number {
    return this.size;
  }

  get isSmallest(): boolean {
    return Math.min(this.size, this.requested) === 1;
  }

  /** Sets the number of requested blocks, which may be less than the current size. */
  request(blocks: number): void {
    this.requested = blocks;
  }

  halve(): void {
    this.size = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
  }

  /** Counts a late or truncated response. @returns whether to treat the range as too large */
  recordLate(): boolean {
    this.lateResponses++;
    if (this.lateResponses < LATE_RESPONSES_TO_HALVE) return false;
    this.sizeAfterLate = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
    this.lateAtMs = this.nowMs();
    return true;
  }

  recordSuccess(blocks: number): void {
    this.lateResponses = 0;
    if (blocks < this.size) return;
    const isRemembered = this.nowMs() - this.lateAtMs < LATE_REMEMBERED_MS;
    const sizeMax = isRemembered ? Math.min(this.sizeMax, this.sizeAfterLate) : this.sizeMax;
    this.size = Math.min(sizeMax, Math.ceil(this.size * GROWTH));
  }
}

/** The next range must be smaller. Not a fault of the node. */
export class SmallerRangeFault extends Error {
  override readonly name = 'SmallerRangeFault';
  override readonly cause: NodeFault;

  constructor(cause: NodeFault) {
    super(cause.message);
    this.cause = cause;
  }
}

/**
 * Reads a range. If a node is repeatedly late or drops the connection but responds to a small request, its range is
 * halved. @throws SmallerRangeFault if a smaller range may succeed; NodeFault like `readRange`
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
  if (fault.kind === 'too-large') return true;
  // A late node has just returned the horizon. A node that drops the connection may be unavailable.
  const mayBeTooLarge = fault.kind === 'timeout' || (fault.kind === 'unreachable' && (await respondsToSmallRequest(node)));
  return mayBeTooLarge && size.recordLate();
}

const respondsToSmallRequest = (node: ChainNode): Promise<boolean> =>
  node.chainId().then(
    () => true,
    () => false,
  );
