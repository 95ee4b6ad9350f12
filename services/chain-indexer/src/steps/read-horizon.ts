import { type BlockName, type ChainBlock, type ChainNode, checkLinks, ForkFault, NodeFault } from '@playline/chain';

export interface Horizon {
  readonly head: ChainBlock;
  /** The highest final block so far, or null if there is none. */
  readonly final: BlockName | null;
}

export interface HorizonOptions {
  readonly finality: 'finalized' | number;
  /** Called when blocks that were not final have been replaced. */
  readonly onReorg: (depth: number) => void;
}

/** Maximum tracked blocks. If more blocks are not final, only final blocks are tracked. */
const TRACKED_MAX = 1_024;

/** Tracks the end of a chain. The horizon never moves back, and each horizon descends from the previous one. */
export class HorizonTracker {
  private readonly options: HorizonOptions;
  private final: BlockName | null = null;
  /** The linked blocks from `final` to the latest block, or empty if they were not read. */
  private blocks: readonly ChainBlock[] = [];
  /** The linked final blocks. */
  private settled: readonly ChainBlock[] = [];

  constructor(options: HorizonOptions) {
    this.options = options;
  }

  /** Marks an indexed block as final, even if nodes report an earlier final block. */
  anchor(indexed: BlockName): void {
    if (this.final !== null && this.final.number >= indexed.number) return;
    this.final = indexed;
    this.blocks = [];
  }

  /** Forgets all blocks, because another process may have published in the meantime. */
  reset(): void {
    this.final = null;
    [this.blocks, this.settled] = [[], []];
  }

  /** @returns the linked blocks, or undefined if some are missing */
  trackedBlocks(from: number, to: number): readonly ChainBlock[] | undefined {
    const first = this.settled.findIndex(({ number }) => number === from);
    const found = first < 0 ? [] : this.settled.slice(first, first + to - from + 1);
    return found.length === to - from + 1 ? found : undefined;
  }

  /** @throws ForkFault if the node lacks the horizon; NodeFault `behind` */
  async read(node: ChainNode): Promise<Horizon> {
    const { finality } = this.options;
    const finalized = finality === 'finalized' ? await node.block('finalized') : null;
    const head = await node.block('latest');
    if (head === null) throw new NodeFault('behind', 'the node has no latest block');
    const reported = finality === 'finalized' ? finalized?.number : head.number - finality;
    const floor = this.final?.number ?? -1;
    if (head.number < Math.max(floor, reported ?? -1))
      throw new NodeFault('behind', "the node's latest block is below the last final block");
    const target = Math.max(floor, reported ?? -1);
    if (target < 0) return { head, final: null };
    const blocks = await this.readBlocks(node, { head, target });
    const final = blocks.find(({ number }) => number === target);
    if (final === undefined) throw new NodeFault('behind', 'the node does not return the final block');
    if (finalized?.number === target && finalized.hash !== final.hash)
      throw new NodeFault('inconsistent', 'the finalized block is not an ancestor of the latest block');
    this.settle(blocks, final);
    return { head, final: this.final };
  }

  private settle(blocks: readonly ChainBlock[], final: ChainBlock): void {
    const finalBlocks = blocks.filter(({ number }) => number <= final.number);
    const last = this.settled.at(-1);
    const isNext = last !== undefined && finalBlocks.some(({ parentHash }) => parentHash === last.hash);
    const added = finalBlocks.filter(({ number }) => number > (last?.number ?? -1));
    const settled = isNext || added.length === 0 ? [...this.settled, ...added] : finalBlocks;
    this.settled = settled.slice(-TRACKED_MAX);
    this.blocks = blocks.filter(({ number }) => number >= final.number);
    this.final = { number: final.number, hash: final.hash };
  }

  /** Reads the blocks from the horizon to the latest block, or only the final block if there are too many. */
  private async readBlocks(
    node: ChainNode,
    { head, target }: { head: ChainBlock; target: number },
  ): Promise<readonly ChainBlock[]> {
    const tip = this.blocks.at(-1);
    // Also compares the number, because a faulty node may report two latest blocks with the same hash.
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

  /** @returns the linked blocks up to the head */
  private async readTo(node: ChainNode, from: number, head: ChainBlock): Promise<readonly ChainBlock[]> {
    if (from === head.number) return [head];
    const blocks = [...(await node.blocks(from, head.number - 1)), head];
    checkLinks(blocks, { from, to: head.number });
    return blocks;
  }

  /** Reads only the final block. The blocks in between are checked when they are indexed. */
  private async skip(node: ChainNode, { head, target }: { head: ChainBlock; target: number }): Promise<ChainBlock[]> {
    if (this.final !== null) {
      const block = await node.block(this.final.number);
      if (block === null) throw new NodeFault('behind', 'the node does not return a block that was final');
      this.checkHorizon(block);
    }
    const from = head.number - target > TRACKED_MAX ? target : null;
    if (from === null) return [...(await this.readTo(node, target, head))];
    const final = await node.block(target);
    return final === null ? [] : [final];
  }

  private checkHorizon({ number, hash }: ChainBlock): void {
    const { final } = this;
    if (final !== null && final.number === number && final.hash !== hash)
      throw new ForkFault(final, `block ${number} on the node has a different hash than the final block`);
  }

  private reportReorg(blocks: readonly ChainBlock[]): void {
    const hashes = new Set(blocks.map(({ hash }) => hash));
    const head = blocks.at(-1)!;
    // Blocks above a lagging node's latest block were not replaced.
    const replaced = this.blocks.filter(({ number, hash }) => number <= head.number && !hashes.has(hash));
    if (replaced.length > 0) this.options.onReorg(replaced.length);
  }
}
