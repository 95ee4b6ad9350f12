import { setTimeout as delay } from 'node:timers/promises';
import { setClock } from './anvil.ts';
import { callRpc, callRpcs } from './rpc.ts';

export interface BlockMakerOptions {
  /** Address of a node that makes no blocks by itself. */
  readonly rpc: string;
  /** A block is final after this many later blocks. */
  readonly depth: number;
  /** Time between blocks in milliseconds. */
  readonly blockMs: number;
  /** Saves the chain. Called after a change, never twice at once. @returns number of the last saved block */
  readonly save: () => Promise<number>;
  /** Called with each error. The work is tried again. */
  readonly onFault?: (fault: unknown) => void;
}

/** Makes blocks only while transactions wait or are not final yet. */
export interface BlockMaker {
  /** Stops making blocks, and saves the chain. */
  close(): Promise<void>;
}

/** The latest blocks and waiting transactions at one moment. */
interface ChainState {
  readonly number: number;
  readonly hash: string;
  readonly waiting: number;
  /** True while a transaction is not final, because too few blocks have followed it. */
  readonly isOpen: boolean;
}

interface Block {
  readonly number: string;
  readonly hash: string;
  readonly transactions: readonly string[];
}

const RETRY_MS = 500;

async function readState({ rpc, depth }: BlockMakerOptions): Promise<ChainState> {
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
 * A node that was started from a saved state has only the latest block's state, and refuses queries about final blocks.
 * It answers them again after as many new blocks as finality needs.
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
  /** Number of the last saved block; -1 before the first save. */
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
      // An event may arrive between the last check and the end of the loop.
      if (this.isWoken) this.wake();
    });
  }

  private async run(): Promise<void> {
    try {
      while (this.isWoken && !this.isClosed) {
        this.isWoken = false;
        if (!this.isKnown) await meet(this.options);
        this.isKnown = true;
        const standing = await readState(this.options);
        this.number = standing.number;
        // A transaction that cannot be included does not count as waiting: the node sets it aside or drops it.
        if (standing.waiting > 0 || standing.isOpen) await this.make();
        else await this.saveOf(standing.hash);
      }
    } catch (fault) {
      await this.rest(fault);
    }
  }

  /** After an error: waits for events when the node is gone; retries later when the node answered with an error. */
  private async rest(fault: unknown): Promise<void> {
    if (this.isClosed) return;
    this.options.onFault?.(fault);
    await delay(RETRY_MS, undefined, { ref: false });
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
   * Waits for a save before too many blocks are unsaved. A killed node loses its unsaved blocks. They are always fewer
   * than finality needs, so no final block is lost.
   */
  private async makeRoom(): Promise<void> {
    // The first block is final from the beginning.
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

  /** Saves a chain at rest, because a save that began while blocks were made may lack the last ones. */
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
    // Also saves changes that were made without a block. A node that is gone has nothing to save.
    await this.options.save().catch(() => {});
  }
}

/** Starts to watch a chain and make its blocks. The node may start later, or stop and come back. */
export function openBlockMaker(options: BlockMakerOptions): BlockMaker {
  return new BlockMaking(options);
}

/** Events that a node pushes, so that a chain at rest costs nothing. */
interface ChainEvents {
  /** Whether the node is there now. */
  isOpen(): boolean;
  close(): void;
}

interface ChainListener {
  /** The node is connected, for the first time or again. Earlier events are lost. */
  onOpen(): void;
  onBlock(): void;
  /** A transaction waits for a block. */
  onTransaction(): void;
}

const RECONNECT_MS = 250;
const SUBSCRIPTIONS = ['newHeads', 'newPendingTransactions'];

interface Notification {
  readonly method?: string;
  readonly params?: { readonly result?: unknown };
}

/** Listens to a node until closed, and reconnects whenever the node is back. */
function openChainEvents(rpc: string, listener: ChainListener): ChainEvents {
  let socket: WebSocket;
  let timer: NodeJS.Timeout | undefined;
  let [isOpen, isClosed] = [false, false];
  const hear = (text: string) => {
    const { method, params } = JSON.parse(text) as Notification;
    if (method !== 'eth_subscription') return;
    // A text is the hash of a transaction; an object is a block.
    if (typeof params?.result === 'string') listener.onTransaction();
    else listener.onBlock();
  };
  const connect = () => {
    socket = new WebSocket(rpc.replace(/^http/, 'ws'));
    socket.addEventListener('open', () => {
      isOpen = true;
      for (const [id, name] of SUBSCRIPTIONS.entries())
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params: [name] }));
      listener.onOpen();
    });
    socket.addEventListener('message', ({ data }) => hear(String(data)));
    // A close event follows every error.
    socket.addEventListener('close', () => {
      isOpen = false;
      if (!isClosed) timer = setTimeout(connect, RECONNECT_MS).unref();
    });
  };
  connect();
  return {
    isOpen: () => isOpen,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      socket.close();
    },
  };
}
