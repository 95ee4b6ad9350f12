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
    /** Final blocks are watched too where nodes tell of them. */
    readonly finality?: 'finalized' | number;
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
  /** The same of final blocks; -1 while none is final. */
  readonly finals: { readonly atMs: number; readonly number: number }[];
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
/** Final blocks come in steps of minutes, and some late ones are no fault. */
const FINAL_STILL_MS = 1_800_000;

/**
 * Polls the latest block of every node of a chain, apart from all other requests. A node that has stopped following its
 * chain still answers everything, so no other request would show it.
 */
export class HeadWatch {
  private readonly options: HeadWatchOptions;
  private readonly watched: readonly Watched[];
  private readonly nowMs: () => number;
  /** The greatest final block of all nodes, and when it rose. */
  private final = { number: -1, atMs: 0 };

  constructor(options: HeadWatchOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.final.atMs = this.nowMs();
    this.watched = options.nodes.map((node) => ({
      ...{ node, isOfChain: false, isAnswering: false, hash: null, changedAtMs: Number.NEGATIVE_INFINITY },
      ...{ heads: [], finals: [], isToldToLag: false },
    }));
  }

  /** Asks one node. @returns milliseconds until it may be asked again */
  async look(node: ChainNode): Promise<number> {
    const each = this.watched.find((found) => found.node === node)!;
    try {
      each.isOfChain ||= (await node.chainId()) === this.options.chain.chainId;
      if (each.isOfChain) await this.follow(each);
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
    if (each === undefined) return false;
    const others = this.watched.filter((other) => other !== each);
    return (['heads', 'finals'] as const).some((kind) => this.isBehind(each, others, kind));
  }

  private isBehind(each: Watched, others: readonly Watched[], kind: 'heads' | 'finals'): boolean {
    const last = each[kind].at(-1);
    const before = this.nowMs() - LAG_MS;
    if (last === undefined) return false;
    return others.some(
      ({ [kind]: [first] }) => first !== undefined && first.atMs <= before && first.number > last.number,
    );
  }

  /** Null while some node has had a new block recently, while none answers, and for a chain with `stillAfterS` 0. */
  get standstill(): Standstill | null {
    const { stillAfterS } = this.options.chain;
    if (stillAfterS === 0) return null;
    const finalMs = this.finalStillMs;
    if (finalMs >= Math.max(stillAfterS * 1000, FINAL_STILL_MS))
      return { ms: finalMs, block: Math.max(0, this.final.number) };
    const ms = this.stillMs;
    if (ms < stillAfterS * 1000) return null;
    return { ms, block: Math.max(...this.watched.map(({ heads }) => heads.at(-1)?.number ?? 0)) };
  }

  /** How long no node has had a new block; 0 while none answers, since that is reported as silence. */
  get stillMs(): number {
    if (!this.watched.some(({ isAnswering }) => isAnswering)) return 0;
    return this.nowMs() - Math.max(...this.watched.map(({ changedAtMs }) => changedAtMs));
  }

  /** How long no node has had a new final block; 0 where nodes are not asked for it, and while none answers. */
  private get finalStillMs(): number {
    const isAsked = this.options.chain.finality === 'finalized';
    if (!isAsked || !this.watched.some(({ isAnswering }) => isAnswering)) return 0;
    return this.nowMs() - this.final.atMs;
  }

  /** Of each node, in the order of the settings. */
  get heads(): readonly WatchedHead[] {
    return this.watched.map(({ node, heads }) => {
      return { node, head: heads.at(-1)?.number ?? null, lags: this.lags(node) };
    });
  }

  private async follow(each: Watched): Promise<void> {
    this.note(each, await each.node.block('latest'));
    if (this.options.chain.finality !== 'finalized') return;
    const number = (await each.node.block('finalized'))?.number ?? -1;
    const atMs = this.nowMs();
    if (number > this.final.number) this.final = { number, atMs };
    keep(each.finals, { atMs, number });
  }

  private note(each: Watched, head: { number: number; hash: string } | null): void {
    each.isAnswering = head !== null;
    if (head === null) return;
    const atMs = this.nowMs();
    // Another block with the same number is news too.
    if (each.hash !== head.hash) [each.hash, each.changedAtMs] = [head.hash, atMs];
    keep(each.heads, { atMs, number: head.number });
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

/** Of those that are older than the bound the last alone stays. */
function keep(
  told: { readonly atMs: number; readonly number: number }[],
  next: { atMs: number; number: number },
): void {
  told.push(next);
  while (told.length > 1 && told[1]!.atMs <= next.atMs - LAG_MS) told.shift();
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
  // The result of a request still under way is ignored.
  return { watch, close: async () => stop.abort() };
}
