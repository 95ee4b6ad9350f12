import { type ChainNode, NodeFault } from '@playline/chain';
import type { Closable, Logger } from '@playline/runtime';
import { pause } from '@playline/stores';
import type { ChainIdentity } from './steps/chain-identity.ts';

export interface HeadWatchOptions {
  readonly chain: {
    readonly name: string;
    /** Seconds without a new block before the chain is reported as stalled. 0: never. */
    readonly stillAfterS: number;
    /** If 'finalized', the final blocks are watched as well. */
    readonly finality?: 'finalized' | number;
  };
  /** The lane sets the genesis hash. Nodes are not polled before that. */
  readonly identity: Pick<ChainIdentity, 'genesis' | 'check'>;
  readonly nodes: readonly ChainNode[];
  readonly logger?: Logger;
  /** Returns monotonic time. */
  readonly nowMs?: () => number;
}

export interface WatchedHead {
  readonly node: ChainNode;
  /** null until the node responds. */
  readonly head: number | null;
  /** Whether the node lacks a block that another node had half a minute ago, or has been silent for that long. */
  readonly lags: boolean;
}

/** How long the chain has had no higher block, and the latest block. */
export interface Stall {
  readonly ms: number;
  readonly block: number;
}

interface ReportedBlock {
  readonly atMs: number;
  readonly number: number;
}

interface Watched {
  readonly node: ChainNode;
  /** Whether the chain was checked since the node was last unavailable. */
  isOfChain: boolean;
  isResponding: boolean;
  /** null while the node responds. */
  silentSinceMs: number | null;
  /** Oldest first. Only the last of the blocks older than LAG_MS is retained. */
  readonly heads: ReportedBlock[];
  /** The number is -1 if no block is final. */
  readonly finals: ReportedBlock[];
  isLoggedAsLagging: boolean;
}

/** Detects a stopped node within half a minute, at a cost of 17,000 requests a day. */
const POLL_MS = 5_000;
const POLL_MAX_MS = 60_000;
/** Delay until the lane's first step has determined the chain. */
const UNKNOWN_MS = 1_000;
/** A time rather than blocks, because block times vary. Nodes behind load balancers usually lag a few seconds. */
const LAG_MS = 30_000;
/** Much longer than the few minutes between final blocks. */
const FINAL_STALL_MS = 1_800_000;

/** Polls every node's latest block, because a node that no longer follows its chain still responds to requests. */
export class HeadWatch {
  private readonly options: HeadWatchOptions;
  private readonly watched: readonly Watched[];
  private readonly nowMs: () => number;
  /** The highest blocks that any node has reported. */
  private readonly highest: { readonly heads: HighestBlock; readonly finals: HighestBlock };

  constructor(options: HeadWatchOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.highest = { heads: new HighestBlock(this.nowMs()), finals: new HighestBlock(this.nowMs()) };
    this.watched = options.nodes.map((node) => ({
      node,
      isOfChain: false,
      isResponding: false,
      silentSinceMs: null,
      heads: [],
      finals: [],
      isLoggedAsLagging: false,
    }));
  }

  /** @returns milliseconds until the next poll */
  async poll(node: ChainNode): Promise<number> {
    const each = this.watched.find((found) => found.node === node)!;
    if (this.options.identity.genesis === null) return UNKNOWN_MS;
    const polledAtMs = this.nowMs();
    try {
      if (!each.isOfChain) await this.options.identity.check(node);
      each.isOfChain = true;
      await this.pollBlocks(each);
      each.silentSinceMs = null;
      return POLL_MS;
    } catch (fault) {
      this.noteFault(each, fault, polledAtMs);
      const retryAfterMs = fault instanceof NodeFault ? fault.retryAfterMs : null;
      return Math.min(Math.max(retryAfterMs ?? 0, POLL_MS), POLL_MAX_MS);
    } finally {
      this.logLag(each);
    }
  }

  private noteFault(each: Watched, fault: unknown, polledAtMs: number): void {
    each.isResponding = false;
    const kind = fault instanceof NodeFault ? fault.kind : 'unreachable';
    if (kind === 'unreachable' || kind === 'late') {
      each.silentSinceMs ??= polledAtMs;
      // A different node may respond at the URL afterwards.
      each.isOfChain = false;
    } else each.silentSinceMs = null;
    if (kind === 'other-chain') [each.heads.length, each.finals.length] = [0, 0];
  }

  /** Whether other nodes are ahead, or respond while this node does not. false for a single node. */
  lags(node: ChainNode): boolean {
    const each = this.watched.find((found) => found.node === node);
    if (each === undefined) return false;
    const others = this.watched.filter((other) => other !== each);
    if (this.isSilent(each)) return others.some(({ isResponding }) => isResponding);
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

  /** null while blocks arrive, while no node responds, or if `stillAfterS` is 0. */
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

  /** 0 while no node responds, which is reported separately as silence. */
  private get stillMs(): number {
    if (!this.watched.some(({ isResponding }) => isResponding)) return 0;
    return this.nowMs() - this.highest.heads.lastRoseAtMs;
  }

  /** Returns the responding nodes' highest block, or -1 if there is none. */
  private highestOf(kind: 'heads' | 'finals'): number {
    const responding = this.watched.filter(({ isResponding }) => isResponding);
    return responding.map((each) => each[kind].at(-1)?.number ?? -1).reduce((most, each) => Math.max(most, each), -1);
  }

  /** 0 if final blocks are not watched, and while no node responds. */
  private get finalStillMs(): number {
    const isWatched = this.options.chain.finality === 'finalized';
    if (!isWatched || !this.watched.some(({ isResponding }) => isResponding)) return 0;
    return this.nowMs() - this.highest.finals.lastRoseAtMs;
  }

  /** In the order of the settings. */
  get heads(): readonly WatchedHead[] {
    return this.watched.map(({ node, heads }) => {
      return { node, head: heads.at(-1)?.number ?? null, lags: this.lags(node) };
    });
  }

  private async pollBlocks(each: Watched): Promise<void> {
    const head = await each.node.block('latest');
    each.isResponding = head !== null;
    if (head !== null) this.note(each, 'heads', head.number);
    if (this.options.chain.finality !== 'finalized') return;
    this.note(each, 'finals', (await each.node.block('finalized'))?.number ?? -1);
  }

  private note(each: Watched, kind: 'heads' | 'finals', number: number): void {
    const atMs = this.nowMs();
    addBlock(each[kind], { atMs, number });
    this.highest[kind].report(this.highestOf(kind), atMs);
  }

  private logLag(each: Watched): void {
    const lags = this.lags(each.node);
    if (lags === each.isLoggedAsLagging) return;
    each.isLoggedAsLagging = lags;
    const { chain, logger } = this.options;
    const fields = { chain: chain.name, node: each.node.name, head: each.heads.at(-1)?.number };
    if (!lags) logger?.info(fields, 'node caught up with the other nodes');
    else if (this.isSilent(each)) logger?.warn(fields, 'node not responding, used last');
    else logger?.warn(fields, 'node lagging behind the other nodes, used last');
  }
}

function addBlock(blocks: ReportedBlock[], next: ReportedBlock): void {
  blocks.push(next);
  while (blocks.length > 1 && blocks[1]!.atMs <= next.atMs - LAG_MS) blocks.shift();
}

/** Polls each node until closed. */
export function openHeadWatch(options: HeadWatchOptions): { readonly watch: HeadWatch } & Closable {
  const watch = new HeadWatch(options);
  const stop = new AbortController();
  const { signal } = stop;
  const pollUntilClosed = async (node: ChainNode) => {
    while (!signal.aborted) {
      await pause(await watch.poll(node), signal);
    }
  };
  for (const node of options.nodes) void pollUntilClosed(node);
  // Requests in flight are not awaited.
  return { watch, close: async () => stop.abort() };
}

/** A number that was not reported for this long was incorrect, or the chain has become shorter. */
const FORGOTTEN_MS = 600_000;

/** The highest block of all nodes. Only a higher block counts, because nodes that catch up keep reporting blocks. */
class HighestBlock {
  /** -1 before the first report. */
  private number = -1;
  private reportedAtMs: number;
  private roseAtMs: number;

  constructor(nowMs: number) {
    [this.reportedAtMs, this.roseAtMs] = [nowMs, nowMs];
  }

  get lastRoseAtMs(): number {
    return this.roseAtMs;
  }

  /** @param number the nodes' highest current block */
  report(number: number, nowMs: number): void {
    // An incorrect number must not hide all blocks below it forever.
    if (number < this.number && nowMs - this.reportedAtMs >= FORGOTTEN_MS) this.number = number;
    if (number < this.number) return;
    if (number > this.number) this.roseAtMs = nowMs;
    [this.number, this.reportedAtMs] = [number, nowMs];
  }
}
