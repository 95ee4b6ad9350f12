import { type ChainNode, NodeFault } from '@playline/chain';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { ChainIdentity } from './steps/chain-identity.ts';

export interface HeadWatchOptions {
  readonly chain: {
    readonly name: string;
    /** Seconds without a new block after which the chain is reported; 0: never. */
    readonly stillAfterS: number;
    /** Final blocks are watched too where nodes tell of them. */
    readonly finality?: 'finalized' | number;
  };
  /** Known from the lane; nothing that a node says is used before. */
  readonly identity: Pick<ChainIdentity, 'genesis' | 'check'>;
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
  /** True when it does not have a block that another node had half a minute ago, or is silent for that long. */
  readonly lags: boolean;
}

/** How long no node has had a higher block, and the latest block. */
export interface Stall {
  readonly ms: number;
  readonly block: number;
}

/** A block that a node has told of, and when. */
interface ReportedBlock {
  readonly atMs: number;
  readonly number: number;
}

interface Watched {
  readonly node: ChainNode;
  /** Whether it was found to be of the chain since it was last away. */
  isOfChain: boolean;
  /** Whether it answered the last time it was asked. */
  isAnswering: boolean;
  /** Since when it answers nothing; null while it does. */
  silentSinceMs: number | null;
  /** Its latest blocks, oldest first; of those older than LAG_MS only the last one. */
  readonly heads: ReportedBlock[];
  /** The same of final blocks; -1 while none is final. */
  readonly finals: ReportedBlock[];
  isLoggedAsLagging: boolean;
}

/** Often enough to stop using a node within half a minute; about 17,000 requests a day to each. */
const POLL_MS = 5_000;
const POLL_MAX_MS = 60_000;
/** The lane finds out in its first step which chain it is. */
const UNKNOWN_MS = 1_000;
/**
 * A time and not a number of blocks: chains make a block in 0.2 s or in 12 s. A node behind a load balancer is usually
 * some seconds late; one that lacks what others had half a minute ago has stopped or cannot follow.
 */
const LAG_MS = 30_000;
/** Final blocks come in steps of minutes, and some late ones are no fault. */
const FINAL_STALL_MS = 1_800_000;

/**
 * Polls the latest block of every node of a chain, apart from all other requests. A node that has stopped following its
 * chain still answers everything, so no other request would show it.
 */
export class HeadWatch {
  private readonly options: HeadWatchOptions;
  private readonly watched: readonly Watched[];
  private readonly nowMs: () => number;
  /** The highest latest block and the highest final block of all nodes. */
  private readonly highest: { readonly heads: HighestBlock; readonly finals: HighestBlock };

  constructor(options: HeadWatchOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.highest = { heads: new HighestBlock(this.nowMs()), finals: new HighestBlock(this.nowMs()) };
    this.watched = options.nodes.map((node) => ({
      node,
      isOfChain: false,
      isAnswering: false,
      silentSinceMs: null,
      heads: [],
      finals: [],
      isLoggedAsLagging: false,
    }));
  }

  /** Asks one node. @returns milliseconds until it may be asked again */
  async poll(node: ChainNode): Promise<number> {
    const each = this.watched.find((found) => found.node === node)!;
    if (this.options.identity.genesis === null) return UNKNOWN_MS;
    const askedAtMs = this.nowMs();
    try {
      if (!each.isOfChain) await this.options.identity.check(node);
      each.isOfChain = true;
      await this.follow(each);
      each.silentSinceMs = null;
      return POLL_MS;
    } catch (fault) {
      this.noteFault(each, fault, askedAtMs);
      const asked = fault instanceof NodeFault ? fault.retryAfterMs : null;
      return Math.min(Math.max(asked ?? 0, POLL_MS), POLL_MAX_MS);
    } finally {
      this.logLag(each);
    }
  }

  private noteFault(each: Watched, fault: unknown, askedAtMs: number): void {
    each.isAnswering = false;
    const kind = fault instanceof NodeFault ? fault.kind : 'unreachable';
    if (kind === 'unreachable' || kind === 'late') {
      each.silentSinceMs ??= askedAtMs;
      // When it is there again it may be another node.
      each.isOfChain = false;
    } else each.silentSinceMs = null;
    if (kind === 'other-chain') [each.heads.length, each.finals.length] = [0, 0];
  }

  /** Whether others are ahead of this node, or answer while it does not. With a single node that cannot be known. */
  lags(node: ChainNode): boolean {
    const each = this.watched.find((found) => found.node === node);
    if (each === undefined) return false;
    const others = this.watched.filter((other) => other !== each);
    if (this.isSilent(each)) return others.some(({ isAnswering }) => isAnswering);
    return (['heads', 'finals'] as const).some((kind) => this.isBehind(each, others, kind));
  }

  private isSilent({ silentSinceMs }: Watched): boolean {
    return silentSinceMs !== null && this.nowMs() - silentSinceMs >= LAG_MS;
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
  get stall(): Stall | null {
    const { stillAfterS } = this.options.chain;
    if (stillAfterS === 0) return null;
    const finalMs = this.finalStillMs;
    if (finalMs >= Math.max(stillAfterS * 1000, FINAL_STALL_MS))
      return { ms: finalMs, block: Math.max(0, this.highestOf('finals')) };
    const ms = this.stillMs;
    if (ms < stillAfterS * 1000) return null;
    return { ms, block: Math.max(0, this.highestOf('heads')) };
  }

  /** How long no node has had a higher block; 0 while none answers, since that is reported as silence. */
  private get stillMs(): number {
    if (!this.watched.some(({ isAnswering }) => isAnswering)) return 0;
    return this.nowMs() - this.highest.heads.risenAtMs;
  }

  /** The highest block that a node has now, of those that answer; -1: none. */
  private highestOf(kind: 'heads' | 'finals'): number {
    const answering = this.watched.filter(({ isAnswering }) => isAnswering);
    return answering.map((each) => each[kind].at(-1)?.number ?? -1).reduce((most, each) => Math.max(most, each), -1);
  }

  /** How long no node has had a higher final block; 0 where nodes are not asked for it, and while none answers. */
  private get finalStillMs(): number {
    const isAsked = this.options.chain.finality === 'finalized';
    if (!isAsked || !this.watched.some(({ isAnswering }) => isAnswering)) return 0;
    return this.nowMs() - this.highest.finals.risenAtMs;
  }

  /** Of each node, in the order of the settings. */
  get heads(): readonly WatchedHead[] {
    return this.watched.map(({ node, heads }) => {
      return { node, head: heads.at(-1)?.number ?? null, lags: this.lags(node) };
    });
  }

  private async follow(each: Watched): Promise<void> {
    const head = await each.node.block('latest');
    each.isAnswering = head !== null;
    if (head !== null) this.note(each, 'heads', head.number);
    if (this.options.chain.finality !== 'finalized') return;
    this.note(each, 'finals', (await each.node.block('finalized'))?.number ?? -1);
  }

  private note(each: Watched, kind: 'heads' | 'finals', number: number): void {
    const atMs = this.nowMs();
    keep(each[kind], { atMs, number });
    this.highest[kind].report(this.highestOf(kind), atMs);
  }

  private logLag(each: Watched): void {
    const lags = this.lags(each.node);
    if (lags === each.isLoggedAsLagging) return;
    each.isLoggedAsLagging = lags;
    const { chain, logger } = this.options;
    const of = { chain: chain.name, node: each.node.name, head: each.heads.at(-1)?.number };
    if (!lags) logger?.info(of, 'a node has the blocks of the others again');
    else if (this.isSilent(each)) logger?.warn(of, 'a node has not answered for half a minute: it is asked last');
    else logger?.warn(of, 'a node is half a minute behind the others: it is asked last');
  }
}

/** Of those that are older than the bound the last alone stays. */
function keep(told: ReportedBlock[], next: ReportedBlock): void {
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
      await pause(await watch.poll(node), signal);
    }
  };
  for (const node of options.nodes) void follow(node);
  // The result of a request still under way is ignored.
  return { watch, close: async () => stop.abort() };
}

/** A number that no node has reported for so long was a mistake, or the chain has become shorter. */
const FORGOTTEN_MS = 600_000;

/**
 * The highest block that any node of a chain has reported, and since when. Only a higher number is news: a node that
 * catches up reports other blocks all the time, and nodes behind one address take turns with theirs.
 */
class HighestBlock {
  /** -1 before the first report. */
  private number = -1;
  private reportedAtMs: number;
  private roseAtMs: number;

  constructor(nowMs: number) {
    [this.reportedAtMs, this.roseAtMs] = [nowMs, nowMs];
  }

  /** When it last rose, or when the watch began. */
  get risenAtMs(): number {
    return this.roseAtMs;
  }

  /** @param number the highest block that a node has now */
  report(number: number, nowMs: number): void {
    // One wrong number must not hide all blocks below it for ever. That it is forgotten is no news.
    if (number < this.number && nowMs - this.reportedAtMs >= FORGOTTEN_MS) this.number = number;
    if (number < this.number) return;
    if (number > this.number) this.roseAtMs = nowMs;
    [this.number, this.reportedAtMs] = [number, nowMs];
  }
}
