import { type BlockRange, type ChainNode, NodeFault, type ReadBlocks, readRange } from '@playline/chain';

const GROWTH = 1.25;
/** More than one, because a single timeout may be a transient problem. */
const TIMEOUTS_TO_HALVE = 2;
const TIMEOUT_REMEMBERED_MS = 600_000;

/** The number of blocks per request. Smaller after a refusal, larger after successes. */
export class RangeSize {
  private readonly sizeMax: number;
  private readonly nowMs: () => number;
  private size: number;
  private requested = Number.POSITIVE_INFINITY;
  /** Number of timeouts and truncated responses since a range was last read. */
  private timeouts = 0;
  private timedOutAtMs = Number.NEGATIVE_INFINITY;
  /** The largest size to use after a timeout. */
  private sizeAfterTimeout = Number.POSITIVE_INFINITY;

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

  /** Counts a timeout or a truncated response. @returns whether to treat the range as too large */
  recordTimeout(): boolean {
    this.timeouts++;
    if (this.timeouts < TIMEOUTS_TO_HALVE) return false;
    this.sizeAfterTimeout = Math.max(1, Math.floor(Math.min(this.size, this.requested) / 2));
    this.timedOutAtMs = this.nowMs();
    return true;
  }

  recordSuccess(blocks: number): void {
    this.timeouts = 0;
    if (blocks < this.size) return;
    const isRemembered = this.nowMs() - this.timedOutAtMs < TIMEOUT_REMEMBERED_MS;
    const sizeMax = isRemembered ? Math.min(this.sizeMax, this.sizeAfterTimeout) : this.sizeMax;
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
 * Reads a range. If a node repeatedly times out or drops the connection, but responds to a small request, its range is
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
  // A node that times out has just returned the horizon. A node that drops the connection may be unavailable.
  const mayBeTooLarge = fault.kind === 'timeout' || (fault.kind === 'unreachable' && (await respondsToChainId(node)));
  return mayBeTooLarge && size.recordTimeout();
}

const respondsToChainId = (node: ChainNode): Promise<boolean> =>
  node.chainId().then(
    () => true,
    () => false,
  );
