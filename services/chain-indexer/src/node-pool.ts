import { type ChainNode, ForkFault, NodeFault } from '@playline/chain';
import { SmallerRangeFault } from './steps/range-size.ts';

export interface NodePoolOptions {
  /** In order of preference. */
  readonly nodes: readonly ChainNode[];
  /** Called once per node, before any request. @throws NodeFault if the node is on another chain */
  readonly check: (node: ChainNode) => Promise<void>;
  readonly onFault: (node: ChainNode, fault: NodeFault) => void;
  /** Whether the node lags behind other nodes. Lagging nodes are used only if all others fail. */
  readonly isLagging?: (node: ChainNode) => boolean;
  /** Returns monotonic time. */
  readonly nowMs?: () => number;
}

interface PooledNode {
  readonly node: ChainNode;
  isChecked: boolean;
  faults: number;
  skippedUntilMs: number;
}

const SKIP_MIN_MS = 250;
const SKIP_MAX_MS = 10_000;
/** Upper limit for `Retry-After`. */
const RETRY_AFTER_MAX_MS = 60_000;

/** All nodes have failed or are skipped after an earlier failure. */
export class NodesFault extends Error {
  override readonly name = 'NodesFault';
  /** Milliseconds until a node can be used again. */
  readonly waitMs: number;
  /** The last node's fault, or a fork if there is one. null if all nodes were skipped. */
  override readonly cause: NodeFault | null;

  constructor(waitMs: number, cause: NodeFault | null) {
    super(
      cause === null ? 'all nodes failed recently and will be retried soon' : `${prefixOf(cause)}: ${cause.message}`,
    );
    this.waitMs = waitMs;
    this.cause = cause;
  }
}

const prefixOf = ({ kind }: NodeFault) =>
  kind === 'too-large' ? 'no node returns the complete next block' : 'no node responds';

/** A chain's nodes. Failing nodes are skipped for growing intervals. Lagging nodes are used last. */
export class NodePool {
  private readonly options: NodePoolOptions;
  private readonly pooled: readonly PooledNode[];
  private readonly nowMs: () => number;

  constructor(options: NodePoolOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.pooled = options.nodes.map((node) => ({ node, isChecked: false, faults: 0, skippedUntilMs: 0 }));
  }

  /** Checks all nodes again, because the required chain identity has changed. */
  recheck(): void {
    for (const each of this.pooled) each.isChecked = false;
  }

  /** Tries the nodes in order until the action succeeds. @throws NodesFault if all nodes fail; SmallerRangeFault */
  async use<T>(action: (node: ChainNode) => Promise<T>): Promise<T> {
    let last: NodeFault | null = null;
    for (const each of this.inOrder()) {
      if (each.skippedUntilMs > this.nowMs()) continue;
      try {
        if (!each.isChecked) await this.options.check(each.node);
        each.isChecked = true;
        const result = await action(each.node);
        each.faults = 0;
        return result;
      } catch (fault) {
        if (fault instanceof SmallerRangeFault) this.options.onFault(each.node, fault.cause);
        if (!(fault instanceof NodeFault)) throw fault;
        this.options.onFault(each.node, fault);
        this.skip(each, fault);
        // A fork takes precedence over an unavailable node.
        if (!(last instanceof ForkFault)) last = fault;
      }
    }
    const wait =
      this.pooled
        .map(({ skippedUntilMs }) => skippedUntilMs)
        .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY) - this.nowMs();
    throw new NodesFault(Math.max(wait, 0), last);
  }

  private inOrder(): readonly PooledNode[] {
    const { isLagging = () => false } = this.options;
    const lagging = new Set(this.pooled.filter(({ node }) => isLagging(node)));
    return [...this.pooled.filter((each) => !lagging.has(each)), ...lagging];
  }

  private skip(each: PooledNode, { retryAfterMs }: NodeFault): void {
    const skipMs = Math.min(SKIP_MIN_MS * 2 ** each.faults, SKIP_MAX_MS);
    each.faults = Math.min(each.faults + 1, 10);
    each.skippedUntilMs = this.nowMs() + Math.max(skipMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
  }
}
