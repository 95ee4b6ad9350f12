import { type ChainNode, ForkFault, NodeFault } from '@playline/chain';

export interface NodePoolOptions {
  /** In the order in which they are preferred. */
  readonly nodes: readonly ChainNode[];
  /** Asked once of each node, before anything else. @throws NodeFault of a node that is none of the chain's */
  readonly check: (node: ChainNode) => Promise<void>;
  readonly onFault: (node: ChainNode, fault: NodeFault) => void;
  /** Whether others have left a node behind: it is asked last. */
  readonly lags?: (node: ChainNode) => boolean;
  /** A clock that never goes back, in milliseconds. */
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
/** A node that asks for more waits no longer than this. */
const ASKED_REST_MAX_MS = 60_000;

/** Every node was asked in vain, or rests. */
export class NodesFault extends Error {
  override readonly name = 'NodesFault';
  /** Until one may be asked again. */
  readonly waitMs: number;
  /** What the last one that was asked said, or one whose chain has forked; null when all of them rest. */
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
 * Nodes of one chain. Who fails rests for a while, longer each time, and meanwhile others are asked. Who answers, and has
 * been left behind by the others, is asked behind them.
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

  /** Each node is looked at anew: what it must be has changed. */
  recheck(): void {
    for (const each of this.pooled) each.isChecked = false;
  }

  /**
   * Does a piece of work with one node, all of it, or with the next one from the beginning.
   * @param isSmallest nobody can be asked for less than this work asks for
   * @throws NodesFault when none could; a `too-much` of a node as it is where less can be asked for
   */
  async use<T>(work: (node: ChainNode) => Promise<T>, isSmallest = false): Promise<T> {
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
        if (!(fault instanceof NodeFault)) throw fault;
        this.options.onFault(each.node, fault);
        if (fault.kind === 'too-much' && !isSmallest) throw fault;
        this.rest(each, fault);
        // A fork is more than that another node is away.
        if (!(last instanceof ForkFault)) last = fault;
      }
    }
    const wait = Math.min(...this.pooled.map(({ restsUntilMs }) => restsUntilMs)) - this.nowMs();
    throw new NodesFault(Math.max(wait, 0), last);
  }

  /** Where all of them lag they keep their order. */
  private inTurn(): readonly PooledNode[] {
    const { lags = () => false } = this.options;
    const late = new Set(this.pooled.filter(({ node }) => lags(node)));
    return [...this.pooled.filter((each) => !late.has(each)), ...late];
  }

  private rest(each: PooledNode, { retryAfterMs }: NodeFault): void {
    const own = Math.min(REST_MIN_MS * 2 ** each.faults, REST_MAX_MS);
    each.faults = Math.min(each.faults + 1, 10);
    each.restsUntilMs = this.nowMs() + Math.max(own, Math.min(retryAfterMs ?? 0, ASKED_REST_MAX_MS));
  }
}
