import { type ChainNode, ForkFault, NodeFault } from '@playline/chain';
import { SmallerRangeFault } from './steps/range-size.ts';

export interface NodePoolOptions {
  /** Preferred first. */
  readonly nodes: readonly ChainNode[];
  /** Called once per node, before any request. @throws NodeFault for a node of another chain */
  readonly check: (node: ChainNode) => Promise<void>;
  readonly onFault: (node: ChainNode, fault: NodeFault) => void;
  /** Whether other nodes are ahead, so that the node is used last. */
  readonly lags?: (node: ChainNode) => boolean;
  /** Monotonic. */
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
/** For `Retry-After`. */
const REQUESTED_REST_MAX_MS = 60_000;

/** Every node has failed or is resting. */
export class NodesFault extends Error {
  override readonly name = 'NodesFault';
  /** Milliseconds until a node may be used again. */
  readonly waitMs: number;
  /** Fault of the last node, or a fork; null when all nodes are resting. */
  override readonly cause: NodeFault | null;

  constructor(waitMs: number, cause: NodeFault | null) {
    super(cause === null ? 'every node failed recently and is retried soon' : `${startOf(cause)}: ${cause.message}`);
    this.waitMs = waitMs;
    this.cause = cause;
  }
}

const startOf = ({ kind }: NodeFault) =>
  kind === 'too-much' ? 'no node returns the whole next block' : 'no node responds';

/** Nodes of one chain. A node that fails rests, longer each time; a lagging node is used last. */
export class NodePool {
  private readonly options: NodePoolOptions;
  private readonly pooled: readonly PooledNode[];
  private readonly nowMs: () => number;

  constructor(options: NodePoolOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.pooled = options.nodes.map((node) => ({ node, isChecked: false, faults: 0, restsUntilMs: 0 }));
  }

  /** Checks all nodes again, because the required chain identity has changed. */
  recheck(): void {
    for (const each of this.pooled) each.isChecked = false;
  }

  /** If a node fails, the next node repeats all of the work. @throws NodesFault when all fail; SmallerRangeFault */
  async use<T>(work: (node: ChainNode) => Promise<T>): Promise<T> {
    let last: NodeFault | null = null;
    for (const each of this.inOrder()) {
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
        // A fork matters more than an unavailable node.
        if (!(last instanceof ForkFault)) last = fault;
      }
    }
    const wait =
      this.pooled
        .map(({ restsUntilMs }) => restsUntilMs)
        .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY) - this.nowMs();
    throw new NodesFault(Math.max(wait, 0), last);
  }

  private inOrder(): readonly PooledNode[] {
    const { lags = () => false } = this.options;
    const late = new Set(this.pooled.filter(({ node }) => lags(node)));
    return [...this.pooled.filter((each) => !late.has(each)), ...late];
  }

  private rest(each: PooledNode, { retryAfterMs }: NodeFault): void {
    const restMs = Math.min(REST_MIN_MS * 2 ** each.faults, REST_MAX_MS);
    each.faults = Math.min(each.faults + 1, 10);
    each.restsUntilMs = this.nowMs() + Math.max(restMs, Math.min(retryAfterMs ?? 0, REQUESTED_REST_MAX_MS));
  }
}
