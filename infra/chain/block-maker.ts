import { setTimeout as delay } from 'node:timers/promises';
import { setClock } from './anvil.ts';
import { type ChainEvents, openChainEvents } from './chain-events.ts';
import { callRpc, callRpcs } from './rpc.ts';

export interface BlockMakerOptions {
  /** Of a node that makes no blocks by itself. */
  readonly rpc: string;
  /** Blocks that come behind one with transactions before it is final. */
  readonly depth: number;
  /** From one block to the next, in milliseconds. */
  readonly blockMs: number;
  /** Writes down what the chain holds, and says up to which block. Called when something has changed, never twice at once. */
  readonly save: () => Promise<number>;
  /** Told what went wrong; it is tried again. */
  readonly onFault?: (fault: unknown) => void;
}

/** Makes blocks while transactions wait or are not final yet, and none otherwise. */
export interface BlockMaker {
  /** Makes no more, and saves what stands. */
  close(): Promise<void>;
}

/** The latest blocks and what waits, as they were at one moment. */
interface Standing {
  readonly number: number;
  readonly hash: string;
  readonly waiting: number;
  /** A transaction is not final yet: too few blocks have followed it. */
  readonly isOpen: boolean;
}

interface Block {
  readonly number: string;
  readonly hash: string;
  readonly transactions: readonly string[];
}

const AGAIN_MS = 500;

async function readStanding({ rpc, depth }: BlockMakerOptions): Promise<Standing> {
  const [head, pool] = await callRpcs<[Block, { pending: string }]>(rpc, [
    ['eth_getBlockByNumber', 'latest', false],
    ['txpool_status'],
  ]);
  const number = Number(head.number);
  const numbers = Array.from({ length: depth - 1 }, (_, back) => number - 1 - back).filter((each) => each >= 0);
  const before = await callRpcs<(Block | null)[]>(
    rpc,
    numbers.map((each) => ['eth_getBlockByNumber', `0x${each.toString(16)}`, false] as const),
  );
  const isOpen = [head, ...before].some((block) => block !== null && block.transactions.length > 0);
  return { number, hash: head.hash, waiting: Number(pool.pending), isOpen };
}

/**
 * A node that was started with a saved state has that of the latest block alone, and whoever asks for what is final is
 * refused. It is shown again once as many blocks have come as make it final.
 */
async function meet({ rpc, depth }: BlockMakerOptions): Promise<void> {
  await setClock(rpc);
  const nobody = `0x${'0'.repeat(40)}`;
  const isShown = await callRpc(rpc, 'eth_getBalance', [nobody, 'finalized']).then(
    () => true,
    () => false,
  );
  if (!isShown) await callRpc(rpc, 'anvil_mine', [`0x${depth.toString(16)}`]);
}

class BlockMaking implements BlockMaker {
  private readonly options: BlockMakerOptions;
  private readonly events: ChainEvents;
  private running: Promise<void> | null = null;
  private isWoken = false;
  private isClosed = false;
  private isKnown = false;
  private madeAt = Number.NEGATIVE_INFINITY;
  private savedHash = '';
  private saving: Promise<void> | null = null;
  /** All blocks up to it are saved; -1 before the first time. */
  private savedNumber = -1;
  private number = 0;

  constructor(options: BlockMakerOptions) {
    this.options = options;
    this.events = openChainEvents(options.rpc, {
      onOpen: () => {
        this.isKnown = false;
        this.wake();
      },
      onBlock: () => this.wake(),
      onTransaction: () => this.wake(),
    });
  }

  private wake(): void {
    this.isWoken = true;
    if (this.isClosed) return;
    this.running ??= this.run().finally(() => {
      this.running = null;
      // Told between its last look and its end.
      if (this.isWoken) this.wake();
    });
  }

  private async run(): Promise<void> {
    try {
      while (this.isWoken && !this.isClosed) {
        this.isWoken = false;
        if (!this.isKnown) await meet(this.options);
        this.isKnown = true;
        const standing = await readStanding(this.options);
        this.number = standing.number;
        // What no block can take does not wait: the node keeps it apart, or drops it.
        if (standing.waiting > 0 || standing.isOpen) await this.make();
        else await this.saveOf(standing.hash);
      }
    } catch (fault) {
      await this.rest(fault);
    }
  }

  /** A node that is gone is waited for by its events; one that answers with an error is asked again. */
  private async rest(fault: unknown): Promise<void> {
    if (this.isClosed) return;
    this.options.onFault?.(fault);
    await delay(AGAIN_MS, undefined, { ref: false });
    this.isWoken = this.events.isOpen();
  }

  private async make(): Promise<void> {
    const { rpc, blockMs } = this.options;
    await delay(Math.max(0, this.madeAt + blockMs - performance.now()));
    if (this.isClosed) return;
    await this.makeRoom();
    await callRpc(rpc, 'evm_mine');
    this.madeAt = performance.now();
    this.isWoken = true;
    this.number += 1;
    if (this.saving === null) this.startSaving();
  }

  /**
   * What is final is never lost: a node that is killed comes back with all but the blocks that were not saved, and those are
   * fewer than it takes to be final.
   */
  private async makeRoom(): Promise<void> {
    // The first block of all is final from the beginning.
    const isFull = () => this.savedNumber < 0 || this.number + 1 - this.savedNumber >= this.options.depth;
    if (isFull()) await (this.saving ?? this.startSaving());
    if (isFull()) throw new Error('no block is made until the chain can be saved');
  }

  private startSaving(): Promise<void> {
    this.saving = this.options
      .save()
      .then((number) => {
        this.savedNumber = number;
      })
      .catch((fault) => this.options.onFault?.(fault))
      .finally(() => {
        this.saving = null;
      });
    return this.saving;
  }

  /** Of a chain at rest: what was begun while blocks were made may lack the last ones. */
  private async saveOf(hash: string): Promise<void> {
    await this.saving;
    if (hash === this.savedHash) return;
    [this.savedHash, this.savedNumber] = [hash, await this.options.save()];
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.events.close();
    await this.running;
    await this.saving;
    // Also what was changed without a block; a node that is gone has nothing to save.
    await this.options.save().catch(() => {});
  }
}

/** Begins to watch a chain and to make its blocks, also of a node that is not there yet or comes back. */
export function openBlockMaker(options: BlockMakerOptions): BlockMaker {
  return new BlockMaking(options);
}
