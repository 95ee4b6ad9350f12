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
  readonly isLagging: boolean;
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

interface WatchedNode {
  readonly node: ChainNode;
  /** Whether the chain was checked since the node was last unavailable. */
  isChainChecked: boolean;
  isResponding: boolean;
  /** null while the node responds. */
  silentSinceMs: number | null;
  /** Oldest first. Only the last of the blocks older than LAG_MS is retained. */
  readonly heads: ReportedBlock[];
  /** The number is -1 if no block is final. */
  readonly finalBlocks: ReportedBlock[];
  isLoggedAsLagging: boolean;
}

/** Detects a stopped node within half a minute, at a cost of 17,000 requests a day. */
const POLL_MS = 5_000;
const POLL_MAX_MS = 60_000;
/** Delay until the lane's first step has determined the chain. */
const IDENTITY_WAIT_MS = 1_000;
/** Not a number of blocks, because block times vary. Nodes behind load balancers usually lag by a few seconds. */
const LAG_MS = 30_000;
/** Much longer than the few minutes between final blocks. */
const FINAL_STALL_MS = 1_800_000;

/** Polls every node's latest block, because a node that no longer follows its chain still responds to requests. */
export class HeadWatch {
  private readonly options: HeadWatchOptions;
  private readonly watched: readonly WatchedNode[];
  private readonly nowMs: () => number;
  /** The highest blocks that any node has reported. */
  private readonly highest: { readonly heads: HighestBlock; readonly finalBlocks: HighestBlock };

  constructor(options: HeadWatchOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.highest = { heads: new HighestBlock(this.nowMs()), finalBlocks: new HighestBlock(this.nowMs()) };
    this.watched = options.nodes.map((node) => ({
      node,
      isChainChecked: false,
      isResponding: false,
      silentSinceMs: null,
      heads: [],
      finalBlocks: [],
      isLoggedAsLagging: false,
    }));
  }

  /** @returns milliseconds until the next poll */
  async poll(node: ChainNode): Promise<number> {
    const each = this.watched.find((found) => found.node === node)!;
    if (this.options.identity.genesis === null) return IDENTITY_WAIT_MS;
    const polledAtMs = this.nowMs();
    try {
      if (!each.isChainChecked) await this.options.identity.check(node);
      each.isChainChecked = true;
      await this.pollBlocks(each);
      each.silentSinceMs = null;
      return POLL_MS;
    } catch (fault) {
      this.recordFault(each, fault, polledAtMs);
      const retryAfterMs = fault instanceof NodeFault ? fault.retryAfterMs : null;
      return Math.min(Math.max(retryAfterMs ?? 0, POLL_MS), POLL_MAX_MS);
    } finally {
      this.logLag(each);
    }
  }

  private recordFault(each: WatchedNode, fault: unknown, polledAtMs: number): void {
    each.isResponding = false;
    const kind = fault instanceof NodeFault ? fault.kind : 'unreachable';
    if (kind === 'unreachable' || kind === 'timeout') {
      each.silentSinceMs ??= polledAtMs;
      // A different node may respond at the URL afterwards.
      each.isChainChecked = false;
    } else each.silentSinceMs = null;
    if (kind === 'other-chain') [each.heads.length, each.finalBlocks.length] = [0, 0];
  }

  /** Whether other nodes are ahead, or respond while this node does not. false for a single node. */
  isLagging(node: ChainNode): boolean {
    const each = this.watched.find((found) => found.node === node);
    if (each === undefined) return false;
    const others = this.watched.filter((other) => other !== each);
    if (this.isSilent(each)) return others.some(({ isResponding }) => isResponding);
    return (['heads', 'finalBlocks'] as const).some((kind) => this.isBehind(each, others, kind));
  }

  private isSilent({ silentSinceMs }: WatchedNode): boolean {
    return silentSinceMs !== null && this.nowMs() - silentSinceMs >= LAG_MS;
  }

  private isBehind(each: WatchedNode, others: readonly WatchedNode[], kind: 'heads' | 'finalBlocks'): boolean {
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
    const finalMs = this.finalityStalledMs;
    if (finalMs >= Math.max(stillAfterS * 1000, FINAL_STALL_MS))
      return { ms: finalMs, block: Math.max(0, this.highestOf('finalBlocks')) };
    const ms = this.stalledMs;
    if (ms < stillAfterS * 1000) return null;
    return { ms, block: Math.max(0, this.highestOf('heads')) };
  }

  /** 0 while no node responds, which is reported separately as silence. */
  private get stalledMs(): number {
    if (!this.watched.some(({ isResponding }) => isResponding)) return 0;
    return this.nowMs() - this.highest.heads.lastAdvancedAtMs;
  }

  /** Returns the responding nodes' highest block, or -1 if there is none. */
  private highestOf(kind: 'heads' | 'finalBlocks'): number {
    const responding = this.watched.filter(({ isResponding }) => isResponding);
    return responding.map((each) => each[kind].at(-1)?.number ?? -1).reduce((most, each) => Math.max(most, each), -1);
  }

  /** 0 if final blocks are not watched, and while no node responds. */
  private get finalityStalledMs(): number {
    const isWatched = this.options.chain.finality === 'finalized';
    if (!isWatched || !this.watched.some(({ isResponding }) => isResponding)) return 0;
    return this.nowMs() - this.highest.finalBlocks.lastAdvancedAtMs;
  }

  /** In configuration order. */
  get heads(): readonly WatchedHead[] {
    return this.watched.map(({ node, heads }) => {
      return { node, head: heads.at(-1)?.number ?? null, isLagging: this.isLagging(node) };
    });
  }

  private async pollBlocks(each: WatchedNode): Promise<void> {
    const head = await each.node.block('latest');
    each.isResponding = head !== null;
    if (head !== null) this.recordBlock(each, 'heads', head.number);
    if (this.options.chain.finality !== 'finalized') return;
    this.recordBlock(each, 'finalBlocks', (await each.node.block('finalized'))?.number ?? -1);
  }

  private recordBlock(each: WatchedNode, kind: 'heads' | 'finalBlocks', number: number): void {
    const atMs = this.nowMs();
    addBlock(each[kind], { atMs, number });
    this.highest[kind].report(this.highestOf(kind), atMs);
  }

  private logLag(each: WatchedNode): void {
    const isLagging = this.isLagging(each.node);
    if (isLagging === each.isLoggedAsLagging) return;
    each.isLoggedAsLagging = isLagging;
    const { chain, logger } = this.options;
    const fields = { chain: chain.name, node: each.node.name, head: each.heads.at(-1)?.number };
    if (!isLagging) logger?.info(fields, 'node caught up with the other nodes');
    else if (this.isSilent(each)) logger?.warn(fields, 'node not responding; using it only as a last resort');
    else logger?.warn(fields, 'node lagging behind other nodes; using it only as a last resort');
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
const NUMBER_EXPIRY_MS = 600_000;

/** The highest block of all nodes. Only a higher block counts, because nodes that catch up keep reporting blocks. */
class HighestBlock {
  /** -1 before the first report. */
  private number = -1;
  private reportedAtMs: number;
  private advancedAtMs: number;

  constructor(nowMs: number) {
    [this.reportedAtMs, this.advancedAtMs] = [nowMs, nowMs];
  }

  get lastAdvancedAtMs(): number {
    return this.advancedAtMs;
  }

  /** @param number the nodes' highest current block */
  report(number: number, nowMs: number): void {
    // Otherwise, an incorrect number would hide all lower blocks forever.
    if (number < this.number && nowMs - this.reportedAtMs >= NUMBER_EXPIRY_MS) this.number = number;
    if (number < this.number) return;
    if (number > this.number) this.advancedAtMs = nowMs;
    [this.number, this.reportedAtMs] = [number, nowMs];
  }
}
