import { type ChainNode, ForkFault, NodeFault } from '@playline/chain';
import { SmallerRangeFault } from './steps/range-size.ts';

export interface NodePoolOptions {
  /** The preferred one first. */
  readonly nodes: readonly ChainNode[];
  /** Called once for each node, before anything else. @throws NodeFault for a node of another chain */
  readonly check: (node: ChainNode) => Promise<void>;
  readonly onFault: (node: ChainNode, fault: NodeFault) => void;
  /** Whether other nodes are ahead of this one, so that it is used last. */
  readonly lags?: (node: ChainNode) => boolean;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}

interface PooledNode {
  readonly node: ChainNode;
  isChecked: boolean;
  faults: number;
  restsUntilMs: number;
}

const REST_MIN_MS = 250;
const REST_MAX_MS = 10_000;
/** Longest rest that a node can ask for. */
const REQUESTED_REST_MAX_MS = 60_000;

/** No node could do the work: each has failed or is resting. */
export class NodesFault extends Error {
  override readonly name = 'NodesFault';
  /** Milliseconds until a node may be used again. */
  readonly waitMs: number;
  /** Fault of the last node that was tried, or of one whose chain has forked; null when all of them are resting. */
  override readonly cause: NodeFault | null;

  constructor(waitMs: number, cause: NodeFault | null) {
    super(
      cause === null
        ? 'every node has failed a moment ago and is asked again soon'
        : `${startOf(cause)}: ${cause.message}`,
    );
    this.waitMs = waitMs;
    this.cause = cause;
  }
}

const startOf = ({ kind }: NodeFault) =>
  kind === 'too-much' ? 'no node returns the whole next block' : 'no node answers';

/**
 * Nodes of one chain. A node that fails rests, longer each time, and the others are used. A node that answers but lags
 * behind the others is used after them.
 */
export class NodePool {
  private readonly options: NodePoolOptions;
  private readonly pooled: readonly PooledNode[];
  private readonly nowMs: () => number;

  constructor(options: NodePoolOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.pooled = options.nodes.map((node) => ({ node, isChecked: false, faults: 0, restsUntilMs: 0 }));
  }

  /** Checks each node again, because the chain identity that is required has changed. */
  recheck(): void {
    for (const each of this.pooled) each.isChecked = false;
  }

  /**
   * Does a piece of work with one node. If that node fails, the next one does all of it again.
   * @throws NodesFault when no node could do it; SmallerRangeFault of a node that can do it with less
   */
  async use<T>(work: (node: ChainNode) => Promise<T>): Promise<T> {
    let last: NodeFault | null = null;
    for (const each of this.inTurn()) {
      if (each.restsUntilMs > this.nowMs()) continue;
      try {
        if (!each.isChecked) await this.options.check(each.node);
        each.isChecked = true;
        const done = await work(each.node);
        each.faults = 0;
        return done;
      } catch (fault) {
        if (fault instanceof SmallerRangeFault) this.options.onFault(each.node, fault.cause);
        if (!(fault instanceof NodeFault)) throw fault;
        this.options.onFault(each.node, fault);
        this.rest(each, fault);
        // A fork matters more than the absence of another node.
        if (!(last instanceof ForkFault)) last = fault;
      }
    }
    const wait =
      this.pooled
        .map(({ restsUntilMs }) => restsUntilMs)
        .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY) - this.nowMs();
    throw new NodesFault(Math.max(wait, 0), last);
  }

  /** When all nodes lag they keep their order. */
  private inTurn(): readonly PooledNode[] {
    const { lags = () => false } = this.options;
    const late = new Set(this.pooled.filter(({ node }) => lags(node)));
    return [...this.pooled.filter((each) => !late.has(each)), ...late];
  }

  private rest(each: PooledNode, { retryAfterMs }: NodeFault): void {
    const own = Math.min(REST_MIN_MS * 2 ** each.faults, REST_MAX_MS);
    each.faults = Math.min(each.faults + 1, 10);
    each.restsUntilMs = this.nowMs() + Math.max(own, Math.min(retryAfterMs ?? 0, REQUESTED_REST_MAX_MS));
  }
}
