import { setTimeout as delay } from 'node:timers/promises';
import { type ChainNode, NodeFault } from '@playline/chain';
import type { Closable, Logger } from '@playline/runtime';

export interface HeadWatchOptions {
  readonly chain: {
    readonly name: string;
    /** The chain id that its nodes must return. */
    readonly chainId: number;
    /** Seconds without a new block after which the chain is reported; 0: never. */
    readonly stillAfterS: number;
  };
  readonly nodes: readonly ChainNode[];
  readonly logger?: Logger;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
}

/** What is known of a node without asking it. */
export interface WatchedHead {
  readonly node: ChainNode;
  /** Its latest block; null until it has answered. */
  readonly head: number | null;
  /** True when it does not have a block that another node had half a minute ago. */
  readonly lags: boolean;
}

/** How long no node has had a new block, and the latest block. */
export interface Standstill {
  readonly ms: number;
  readonly block: number;
}

interface Watched {
  readonly node: ChainNode;
  isOfChain: boolean;
  /** Whether it answered the last time it was asked. */
  isAnswering: boolean;
  hash: string | null;
  /** When the hash of its latest block last changed. */
  changedAtMs: number;
  /** Its latest blocks, oldest first; of those older than LAG_MS only the last one. */
  readonly heads: { readonly atMs: number; readonly number: number }[];
  isToldToLag: boolean;
}

/** Often enough to stop using a node within half a minute; about 17,000 requests a day to each. */
const LOOK_MS = 5_000;
const LOOK_MAX_MS = 60_000;
/**
 * A time and not a number of blocks: chains make a block in 0.2 s or in 12 s. A node behind a load balancer is usually
 * some seconds late; one that lacks what others had half a minute ago has stopped or cannot follow.
 */
const LAG_MS = 30_000;

/**
 * Polls the latest block of every node of a chain, apart from all other requests. A node that has stopped following its
 * chain still answers everything, so no other request would show it.
 */
export class HeadWatch {
  private readonly options: HeadWatchOptions;
  private readonly watched: readonly Watched[];
  private readonly nowMs: () => number;

  constructor(options: HeadWatchOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.watched = options.nodes.map((node) => ({
      ...{ node, isOfChain: false, isAnswering: false, hash: null, changedAtMs: Number.NEGATIVE_INFINITY },
      ...{ heads: [], isToldToLag: false },
    }));
  }

  /** Asks one node. @returns milliseconds until it may be asked again */
  async look(node: ChainNode): Promise<number> {
    const each = this.watched.find((found) => found.node === node)!;
    try {
      each.isOfChain ||= (await node.chainId()) === this.options.chain.chainId;
      if (each.isOfChain) this.note(each, await node.block('latest'));
      return LOOK_MS;
    } catch (fault) {
      each.isAnswering = false;
      const asked = fault instanceof NodeFault ? fault.retryAfterMs : null;
      return Math.min(Math.max(asked ?? 0, LOOK_MS), LOOK_MAX_MS);
    } finally {
      this.tellLag(each);
    }
  }

  /** Whether other nodes are ahead of this one. With a single node that cannot be known. */
  lags(node: ChainNode): boolean {
    const each = this.watched.find((found) => found.node === node);
    const head = each?.heads.at(-1);
    if (each === undefined || head === undefined) return false;
    const before = this.nowMs() - LAG_MS;
    const others = this.watched.filter((other) => other !== each);
    return others.some(
      ({ heads: [first] }) => first !== undefined && first.atMs <= before && first.number > head.number,
    );
  }

  /** Null while some node has had a new block recently, while none answers, and for a chain with `stillAfterS` 0. */
  get standstill(): Standstill | null {
    const { stillAfterS } = this.options.chain;
    const ms = this.stillMs;
    if (stillAfterS === 0 || ms < stillAfterS * 1000) return null;
    return { ms, block: Math.max(...this.watched.map(({ heads }) => heads.at(-1)?.number ?? 0)) };
  }

  /** How long no node has had a new block; 0 while none answers, since that is reported as silence. */
  get stillMs(): number {
    if (!this.watched.some(({ isAnswering }) => isAnswering)) return 0;
    return this.nowMs() - Math.max(...this.watched.map(({ changedAtMs }) => changedAtMs));
  }

  /** Of each node, in the order of the settings. */
  get heads(): readonly WatchedHead[] {
    return this.watched.map(({ node, heads }) => {
      return { node, head: heads.at(-1)?.number ?? null, lags: this.lags(node) };
    });
  }

  private note(each: Watched, head: { number: number; hash: string } | null): void {
    each.isAnswering = head !== null;
    if (head === null) return;
    const atMs = this.nowMs();
    // Another block with the same number is news too.
    if (each.hash !== head.hash) [each.hash, each.changedAtMs] = [head.hash, atMs];
    each.heads.push({ atMs, number: head.number });
    while (each.heads.length > 1 && each.heads[1]!.atMs <= atMs - LAG_MS) each.heads.shift();
  }

  private tellLag(each: Watched): void {
    const lags = this.lags(each.node);
    if (lags === each.isToldToLag) return;
    each.isToldToLag = lags;
    const { chain, logger } = this.options;
    const of = { chain: chain.name, node: each.node.name, head: each.heads.at(-1)?.number };
    if (lags) logger?.warn(of, 'a node is half a minute behind the others: it is asked last');
    else logger?.info(of, 'a node has the blocks of the others again');
  }
}

/** Polls each node of a chain every five seconds, independently of the others, until it is closed. */
export function openHeadWatch(options: HeadWatchOptions): { readonly watch: HeadWatch } & Closable {
  const watch = new HeadWatch(options);
  const stop = new AbortController();
  const { signal } = stop;
  const follow = async (node: ChainNode) => {
    while (!signal.aborted) {
      const ms = await watch.look(node);
      await delay(ms, undefined, { signal }).catch(() => {});
    }
  };
  for (const node of options.nodes) void follow(node);
  // The result of a request still under way is ignored.
  return { watch, close: async () => stop.abort() };
}
