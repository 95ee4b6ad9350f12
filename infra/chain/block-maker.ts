// Creates blocks only while transactions are pending or not final.
import { setTimeout as delay } from 'node:timers/promises';
import { setClock } from './anvil.ts';
import { callRpc, callRpcs } from './rpc.ts';

export interface BlockMakerOptions {
  /** A node that creates no blocks itself. */
  readonly rpc: string;
  /** Number of later blocks after which a block is final. */
  readonly depth: number;
  readonly blockMs: number;
  /** Saves the chain. Calls do not overlap. @returns the last saved block number */
  readonly save: () => Promise<number>;
  /** Called with each error, after which the operation is retried. */
  readonly onFault?: (error: unknown) => void;
}

export interface BlockMaker {
  /** Stops creating blocks and saves the chain. */
  close(): Promise<void>;
}

interface ChainState {
  readonly number: number;
  readonly hash: string;
  readonly pending: number;
  readonly hasUnfinalTransactions: boolean;
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
  const hasUnfinalTransactions = [head, ...before].some((block) => block !== null && block.transactions.length > 0);
  return { number, hash: head.hash, pending: Number(pool.pending), hasUnfinalTransactions };
}

/** Mines blocks so that final blocks can be queried, which a node with a loaded state refuses at first. */
async function makeFinalBlocksReadable({ rpc, depth }: BlockMakerOptions): Promise<void> {
  await setClock(rpc);
  const address = `0x${'0'.repeat(40)}`;
  const isReadable = await callRpc(rpc, 'eth_getBalance', [address, 'finalized']).then(
    () => true,
    () => false,
  );
  if (!isReadable) await callRpc(rpc, 'anvil_mine', [`0x${depth.toString(16)}`]);
}

class OpenBlockMaker implements BlockMaker {
  private readonly options: BlockMakerOptions;
  private readonly events: ChainEvents;
  private running: Promise<void> | null = null;
  private isWoken = false;
  private isClosed = false;
  /** False after each reconnection, because the node may have restarted. */
  private isPrepared = false;
  private createdAt = Number.NEGATIVE_INFINITY;
  private savedHash = '';
  private saving: Promise<void> | null = null;
  /** Number of the last saved block; -1 before the first save. */
  private savedNumber = -1;
  private number = 0;

  constructor(options: BlockMakerOptions) {
    this.options = options;
    this.events = openChainEvents(options.rpc, {
      onOpen: () => {
        this.isPrepared = false;
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
        if (!this.isPrepared) await makeFinalBlocksReadable(this.options);
        this.isPrepared = true;
        const state = await readState(this.options);
        this.number = state.number;
        // `pending` does not include transactions that cannot be included in a block.
        if (state.pending > 0 || state.hasUnfinalTransactions) await this.createBlock();
        else await this.saveIdle(state.hash);
      }
    } catch (error) {
      await this.backOff(error);
    }
  }

  /** Retries after a delay if the node is connected; otherwise, the next connection triggers the retry. */
  private async backOff(error: unknown): Promise<void> {
    if (this.isClosed) return;
    this.options.onFault?.(error);
    await delay(RETRY_MS, undefined, { ref: false });
    this.isWoken = this.events.isOpen();
  }

  private async createBlock(): Promise<void> {
    const { rpc, blockMs } = this.options;
    await delay(Math.max(0, this.createdAt + blockMs - performance.now()));
    if (this.isClosed) return;
    await this.ensureSaved();
    await callRpc(rpc, 'evm_mine');
    this.createdAt = performance.now();
    this.isWoken = true;
    this.number += 1;
    if (this.saving === null) this.startSaving();
  }

  /** Limits the number of unsaved blocks, which a killed node loses, to fewer than finality requires. */
  private async ensureSaved(): Promise<void> {
    // The first block is immediately final.
    const mustSave = () => this.savedNumber < 0 || this.number + 1 - this.savedNumber >= this.options.depth;
    if (mustSave()) await (this.saving ?? this.startSaving());
    if (mustSave()) throw new Error('no block is created while the chain cannot be saved');
  }

  private startSaving(): Promise<void> {
    this.saving = this.options
      .save()
      .then((number) => {
        this.savedNumber = number;
      })
      .catch((error) => this.options.onFault?.(error))
      .finally(() => {
        this.saving = null;
      });
    return this.saving;
  }

  /** Saves an idle chain again, because an earlier save may lack the last blocks. */
  private async saveIdle(hash: string): Promise<void> {
    await this.saving;
    if (hash === this.savedHash) return;
    [this.savedHash, this.savedNumber] = [hash, await this.options.save()];
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.events.close();
    await this.running;
    await this.saving;
    // Also saves changes outside blocks. Fails if the node was stopped.
    await this.options.save().catch(() => {});
  }
}

/** Opens a block maker. The node need not be running yet, and may stop and restart. */
export const openBlockMaker = (options: BlockMakerOptions): BlockMaker => new OpenBlockMaker(options);

/** A subscription to the events of a node, so that an idle chain is not polled. */
interface ChainEvents {
  isOpen(): boolean;
  close(): void;
}

interface ChainListener {
  /** Called when the node is connected. Earlier events are lost. */
  onOpen(): void;
  onBlock(): void;
  onTransaction(): void;
}

const RECONNECT_MS = 250;
const SUBSCRIPTIONS = ['newHeads', 'newPendingTransactions'];

function openChainEvents(rpc: string, listener: ChainListener): ChainEvents {
  let socket: WebSocket;
  let timer: NodeJS.Timeout | undefined;
  let [isOpen, isClosed] = [false, false];
  const handle = (text: string) => {
    const { method, params } = JSON.parse(text) as { method?: string; params?: { result?: unknown } };
    if (method !== 'eth_subscription') return;
    // Transactions are hashes, blocks are objects.
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
    socket.addEventListener('message', ({ data }) => handle(String(data)));
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
