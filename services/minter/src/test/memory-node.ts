import { createHash } from 'node:crypto';
import { NodeFault } from '@playline/chain';
import type { ChainNode, LaneSigner, SendOutcome, UnsignedTransaction } from '../ports.ts';
import { gasOf, type MemoryChain, type MemoryTransaction } from './memory-chain.ts';

const toJson = (value: object) => JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}n` : each));
const fromJson = (text: string) =>
  JSON.parse(text, (_, each) => (typeof each === 'string' && /^\d+n$/.test(each) ? BigInt(each.slice(0, -1)) : each));

/** Creates a signer that signs by adding the sender, which memory nodes trust. */
export function createMemorySigner(
  address: string,
  current: LaneSigner['status'] = () => ({ kind: 'live' }),
): LaneSigner {
  return {
    status: current,
    sign: async (transaction) => {
      const bytes = Buffer.from(toJson({ ...transaction, from: address }));
      return { bytes, hash: createHash('sha256').update(bytes).digest() };
    },
    read: (bytes) => {
      const { from: _, ...transaction } = fromJson(bytes.toString()) as UnsignedTransaction & { from: string };
      return transaction;
    },
  };
}

export interface MemoryNodeSettings {
  /** The number of latest blocks that are not final. */
  readonly depth: number;
}

const BLOCK_GAS = 30_000_000;
const FINNEY = 10n ** 15n;

/** A node for an in-memory chain, with a transaction pool that can be lost. */
export class MemoryNode implements ChainNode {
  readonly chain: MemoryChain;
  readonly #depth: number;
  readonly #pool = new Map<string, MemoryTransaction>();
  readonly #refused = new Set<string>();
  baseFee = 10n;
  balance = 1_000_000n * FINNEY;
  isStopped = false;
  /** Rejects the next transaction and all its later variants. */
  isNextRefused = false;

  constructor(chain: MemoryChain, { depth }: MemoryNodeSettings) {
    this.chain = chain;
    this.#depth = depth;
  }

  get poolSize(): number {
    return this.#pool.size;
  }

  /** Creates a block from the transactions that pay enough. @param isIncluded can exclude transactions */
  mine(isIncluded: (transaction: MemoryTransaction) => boolean = () => true): void {
    const offered = [...this.#pool.values()]
      .filter((transaction) => transaction.maxFeePerGas >= this.baseFee && isIncluded(transaction))
      .sort((one, other) => one.nonce - other.nonce);
    for (const { from, nonce } of this.chain.mine(offered)) this.#pool.delete(`${from}:${nonce}`);
  }

  losePool(): void {
    this.#pool.clear();
  }

  /** Returns transactions from replaced blocks to the pool, as some nodes do. Other nodes drop them. */
  restoreToPool(transactions: readonly MemoryTransaction[]): void {
    for (const transaction of transactions) {
      const key = `${transaction.from}:${transaction.nonce}`;
      if (!this.#pool.has(key)) this.#pool.set(key, transaction);
    }
  }

  /** Accepts another program's transaction with the same key, which replaces the signer's own transaction. */
  accept({
    address,
    ...fields
  }: Pick<UnsignedTransaction, 'nonce' | 'chainId' | 'maxFeePerGas'> & { address: string }): void {
    const call = { from: address, to: address, data: '0x', gas: 21_000, maxPriorityFeePerGas: 1n, ...fields };
    const hash = `0x${createHash('sha256')
      .update(toJson({ ...call, by: 'another program' }))
      .digest('hex')}`;
    this.#pool.set(`${address}:${fields.nonce}`, { ...call, hash });
  }

  #respond<T>(value: () => T): Promise<T> {
    if (this.isStopped) return Promise.reject(new NodeFault('unreachable', 'the node does not respond'));
    return Promise.resolve(value());
  }

  chainId = () => this.#respond(() => 31_337);
  genesisHash = () => this.#respond(() => this.chain.genesisHash);

  head = (known?: number) =>
    this.#respond(() => {
      const { number } = this.chain.head;
      const finalized = Math.max(0, number - this.#depth);
      const knownHash = known === undefined ? null : (this.chain.blockAt(known)?.hash ?? null);
      return {
        number,
        finalized,
        finalizedHash: this.chain.blockAt(finalized)!.hash,
        baseFee: this.baseFee,
        knownHash,
      };
    });

  nonceCounts: ChainNode['nonceCounts'] = (address, at) =>
    this.#respond(() =>
      at.map((each) => {
        if (typeof each === 'number') return this.chain.nonceOf(address, each);
        let nonce = this.chain.nonceOf(address);
        if (each === 'pending') while (this.#pool.has(`${address}:${nonce}`)) nonce++;
        return nonce;
      }),
    );

  receiptOf = (hash: string) => this.#respond(() => this.chain.receiptOf(hash));
  blockHashOf = (number: number) => this.#respond(() => this.chain.blockAt(number)?.hash ?? null);
  viewOf: ChainNode['viewOf'] = async (hash, blocks) => ({
    receipt: await this.receiptOf(hash),
    blockHashes: await Promise.all(blocks.map(this.blockHashOf)),
  });
  hashByNonce: ChainNode['hashByNonce'] = ({ address, nonce, horizon }) =>
    this.#respond(() => {
      if (this.chain.blockAt(horizon.number)?.hash !== horizon.hash)
        throw new NodeFault('inconsistent', 'the node has a different block at the horizon');
      return this.chain.hashByNonce({ address, nonce }, horizon.number);
    });
  call: ChainNode['call'] = (call) => this.#respond(() => this.chain.callNode(call));
  gasOf: ChainNode['gasOf'] = (call) =>
    this.#respond(() => {
      const outcome = this.chain.callNode(call);
      return outcome.kind === 'done' ? { kind: 'done', value: gasOf(call.data) } : outcome;
    });
  priorityFee = () => this.#respond(() => 2n);
  balanceOf = (_address: string) => this.#respond(() => this.balance);

  send = (bytes: Buffer): Promise<SendOutcome> => this.#respond(() => this.#send(bytes));

  #send(bytes: Buffer): SendOutcome {
    const hash = `0x${createHash('sha256').update(bytes).digest('hex')}`;
    const transaction: MemoryTransaction = { ...fromJson(bytes.toString()), hash };
    const key = `${transaction.from}:${transaction.nonce}`;
    const current = this.#pool.get(key);
    if (this.chain.receiptOf(hash) !== null || current?.hash === hash) return { kind: 'known' };
    if (transaction.nonce < this.chain.nonceOf(transaction.from)) return { kind: 'nonce-used' };
    if (this.isNextRefused && transaction.data !== '0x') {
      this.isNextRefused = false;
      this.#refused.add(toCall(transaction));
    }
    if (this.#refused.has(toCall(transaction)) || transaction.gas > BLOCK_GAS) return { kind: 'refused' };
    if (BigInt(transaction.gas) * transaction.maxFeePerGas > this.balance) return { kind: 'unfunded' };
    if (current !== undefined && !hasHigherFees(transaction, current)) return { kind: 'underpriced' };
    this.#pool.set(key, transaction);
    return { kind: 'accepted' };
  }
}

const toCall = ({ from, nonce, data }: MemoryTransaction) => `${from} ${nonce} ${data}`;

const hasHigherFees = (one: MemoryTransaction, other: MemoryTransaction) =>
  one.maxFeePerGas * 10n >= other.maxFeePerGas * 11n &&
  one.maxPriorityFeePerGas * 10n >= other.maxPriorityFeePerGas * 11n;
