import { type BlockName, type ChainBlock, type ChainNode, checkLinks, ForkFault, NodeFault } from '@playline/chain';

/** The end of a chain, as a node reports it. */
export interface Horizon {
  readonly head: ChainBlock;
  /** The highest final block ever seen; null when nothing is final yet. */
  readonly final: BlockName | null;
}

export interface HorizonOptions {
  readonly finality: 'finalized' | number;
  /** Called when blocks that were not final were replaced. */
  readonly onReorg: (depth: number) => void;
}

/** Maximum number of blocks above the final one that are kept; if there are more, only final blocks are followed. */
const TRACKED_MAX = 1_024;

/**
 * Follows the end of one chain, whichever node is used. The horizon never moves back, and each new one descends from
 * the one before. A node that disagrees has a chain that was reorganised below the horizon, or another chain.
 */
export class HorizonTracker {
  private readonly options: HorizonOptions;
  private final: BlockName | null = null;
  /** From `final` to the latest block, each the child of the one before; empty when they were not read. */
  private blocks: readonly ChainBlock[] = [];
  /** Final blocks, linked to one another; the next block to index is among them or above them. */
  private settled: readonly ChainBlock[] = [];

  constructor(options: HorizonOptions) {
    this.options = options;
  }

  /** An indexed block is final, whatever nodes say. */
  anchor(indexed: BlockName): void {
    if (this.final !== null && this.final.number >= indexed.number) return;
    this.final = indexed;
    this.blocks = [];
  }

  /** Forgets what was not published: another process may have gone on. */
  reset(): void {
    this.final = null;
    [this.blocks, this.settled] = [[], []];
  }

  /** The blocks of a range that are known already, linked; undefined when some are not. */
  trackedBlocks(from: number, to: number): readonly ChainBlock[] | undefined {
    const first = this.settled.findIndex(({ number }) => number === from);
    const found = first < 0 ? [] : this.settled.slice(first, first + to - from + 1);
    return found.length === to - from + 1 ? found : undefined;
  }

  /** @throws ForkFault when the node's chain does not have the horizon; NodeFault `behind` when the node lags */
  async read(node: ChainNode): Promise<Horizon> {
    const { finality } = this.options;
    const finalized = finality === 'finalized' ? await node.block('finalized') : null;
    const head = await node.block('latest');
    if (head === null) throw new NodeFault('behind', 'it has no latest block');
    const said = finality === 'finalized' ? finalized?.number : head.number - finality;
    const floor = this.final?.number ?? -1;
    if (head.number < Math.max(floor, said ?? -1))
      throw new NodeFault('behind', 'its latest block is below the last final one');
    const target = Math.max(floor, said ?? -1);
    if (target < 0) return { head, final: null };
    const blocks = await this.follow(node, { head, target });
    const final = blocks.find(({ number }) => number === target);
    if (final === undefined) throw new NodeFault('behind', 'it does not return the final block');
    if (finalized?.number === target && finalized.hash !== final.hash)
      throw new NodeFault('inconsistent', 'its finalized block is not an ancestor of its latest block');
    this.settle(blocks, final);
    return { head, final: this.final };
  }

  private settle(blocks: readonly ChainBlock[], final: ChainBlock): void {
    const passed = blocks.filter(({ number }) => number <= final.number);
    const last = this.settled.at(-1);
    const isNext = last !== undefined && passed.some(({ parentHash }) => parentHash === last.hash);
    const added = passed.filter(({ number }) => number > (last?.number ?? -1));
    const settled = isNext || added.length === 0 ? [...this.settled, ...added] : passed;
    this.settled = settled.slice(-TRACKED_MAX);
    this.blocks = blocks.filter(({ number }) => number >= final.number);
    this.final = { number: final.number, hash: final.hash };
  }

  /** Blocks from the last known horizon to the latest one; only the final block when too much is new. */
  private async follow(
    node: ChainNode,
    { head, target }: { head: ChainBlock; target: number },
  ): Promise<readonly ChainBlock[]> {
    const tip = this.blocks.at(-1);
    // The number too: a broken node gave the same hash to two latest blocks, with a reorganisation between them.
    if (tip?.hash === head.hash && tip.number === head.number) return this.blocks;
    if (tip !== undefined && head.number > tip.number && head.number - tip.number <= TRACKED_MAX) {
      const added = await this.readTo(node, tip.number + 1, head);
      if (added[0]!.parentHash === tip.hash) return [...this.blocks, ...added];
    }
    const from = this.final?.number ?? target;
    if (head.number - from > TRACKED_MAX) return this.skip(node, { head, target });
    const blocks = await this.readTo(node, from, head);
    this.checkHorizon(blocks[0]!);
    this.reportReorg(blocks);
    return blocks;
  }

  /** From `from` to the latest block, linked. */
  private async readTo(node: ChainNode, from: number, head: ChainBlock): Promise<readonly ChainBlock[]> {
    if (from === head.number) return [head];
    const blocks = [...(await node.blocks(from, head.number - 1)), head];
    checkLinks(blocks, { from, to: head.number });
    return blocks;
  }

  /** Reads only the final block because too much is new; the blocks between are linked when they are indexed. */
  private async skip(node: ChainNode, { head, target }: { head: ChainBlock; target: number }): Promise<ChainBlock[]> {
    if (this.final !== null) {
      const standing = await node.block(this.final.number);
      if (standing === null) throw new NodeFault('behind', 'it does not return a block that was final before');
      this.checkHorizon(standing);
    }
    const from = head.number - target > TRACKED_MAX ? target : null;
    if (from === null) return [...(await this.readTo(node, target, head))];
    const final = await node.block(target);
    return final === null ? [] : [final];
  }

  private checkHorizon({ number, hash }: ChainBlock): void {
    const { final } = this;
    if (final !== null && final.number === number && final.hash !== hash)
      throw new ForkFault(final, `its block ${number} has another hash than the one that was final`);
  }

  private reportReorg(blocks: readonly ChainBlock[]): void {
    const hashes = new Set(blocks.map(({ hash }) => hash));
    const head = blocks.at(-1)!;
    // A node that lags says nothing about blocks above its latest one.
    const replaced = this.blocks.filter(({ number, hash }) => number <= head.number && !hashes.has(hash));
    if (replaced.length > 0) this.options.onReorg(replaced.length);
  }
}
