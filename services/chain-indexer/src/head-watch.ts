import { setTimeout as delay } from 'node:timers/promises';
import { type ChainNode, NodeFault } from '@playline/chain';
import type { Closable, Logger } from '@playline/runtime';

export interface HeadWatchOptions {
  readonly chain: {
    readonly name: string;
    /** The number that its nodes give. */
    readonly chainId: number;
    /** Seconds without a new block after which the chain is told to stand still; 0: never. */
    readonly stillAfterS: number;
  };
  readonly nodes: readonly ChainNode[];
  readonly logger?: Logger;
  /** A clock that never goes back, in milliseconds. */
  readonly nowMs?: () => number;
}

/** What is known of a node without asking it. */
export interface WatchedHead {
  readonly node: ChainNode;
  /** Its latest block; null until it has told of one. */
  readonly head: number | null;
  /** Others had a later block half a minute ago than it has now. */
  readonly lags: boolean;
}

/** How long no node has had a new block, and which is the latest. */
export interface Standstill {
  readonly ms: number;
  readonly block: number;
}

interface Watched {
  readonly node: ChainNode;
  isOfChain: boolean;
  /** Whether it answered when it was asked last. */
  isAnswering: boolean;
  hash: string | null;
  /** When its latest block was another one than before. */
  changedAtMs: number;
  /** Latest blocks that it has told of, oldest first; of those older than LAG_MS the last alone. */
  readonly heads: { readonly atMs: number; readonly number: number }[];
  isToldToLag: boolean;
}

/** Often enough to leave a node within half a minute, and some 17,000 questions a day to each. */
const LOOK_MS = 5_000;
const LOOK_MAX_MS = 60_000;
/**
 * Counted in time, not in blocks: chains make one in 0.2 s or in 12. A node behind a balancer is some seconds late as a rule;
 * one that has not by now what others had half a minute ago stands still, or cannot follow.
 */
const LAG_MS = 30_000;

/**
 * Looks at the latest block of every node of a chain, besides all else that is asked of them. A node that stands still
 * answers everything, and nothing else would show it.
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

  /** Asks one node. @returns after how many milliseconds it may be asked again */
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

  /** Whether a node has been left behind by others. Of a single node nobody can tell. */
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

  /** Null while some node had a new block of late, while none answers, and for a chain that may stand still. */
  get standstill(): Standstill | null {
    const { stillAfterS } = this.options.chain;
    const ms = this.stillMs;
    if (stillAfterS === 0 || ms < stillAfterS * 1000) return null;
    return { ms, block: Math.max(...this.watched.map(({ heads }) => heads.at(-1)?.number ?? 0)) };
  }

  /** How long no node has had a new block; 0 while none answers: that is told otherwise. */
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
    // A block of the same number in its place is news as well.
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

/** Looks at the nodes of a chain every five seconds, at each by itself, until it is closed. */
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
  // A question that is on its way changes nothing any more.
  return { watch, close: async () => stop.abort() };
}
