import { createHash } from 'node:crypto';
import { decodeFunctionData, encodeAbiParameters, encodeErrorResult, parseAbi } from 'viem/utils';
import { MINT_ABI, toRefusalMessage } from '../chain/mint-calls.ts';
import type { EventLog, MintReceipt, UnsignedTransaction } from '../ports.ts';
import { TRANSFER, TRANSFER_BATCH } from '../steps/settle-nonces.ts';

/** A transaction that the memory signer has signed by adding the sender. */
export interface MemoryTransaction extends UnsignedTransaction {
  readonly from: string;
  readonly hash: string;
}

export interface MemoryToken {
  readonly contract: string;
  readonly tokenId: string;
  readonly owner: string;
  readonly amount: bigint;
}

interface ChainState {
  readonly nonces: Map<string, number>;
  readonly roles: Set<string>;
  readonly tokens: MemoryToken[];
  readonly owned: Set<string>;
  readonly nextIds: Map<string, bigint>;
}

interface MemoryBlock {
  readonly number: number;
  readonly hash: string;
  readonly state: ChainState;
  readonly transactions: readonly { readonly transaction: MemoryTransaction; readonly receipt: MintReceipt }[];
}

const ERRORS = parseAbi([
  'error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)',
  'error ERC721InvalidSender(address sender)',
  'error ERC721InvalidReceiver(address receiver)',
  'error Error(string reason)',
]);
export const BAD_OWNER = `0x${'bad0'.repeat(10)}`;
const ZERO_TOPIC = `0x${'0'.repeat(64)}`;
const FIRST_QUANTITY_ID = 2n ** 128n;
const toTopic = (value: string | bigint) =>
  `0x${(typeof value === 'bigint' ? value.toString(16) : value.slice(2)).padStart(64, '0')}`;

class Reverted extends Error {
  readonly data: string;
  constructor(data: string) {
    super('reverted');
    this.data = data;
  }
}

/** Maps contract addresses to the standard that the contract reports through ERC-165. */
export type MemoryContracts = ReadonlyMap<string, 'ERC721' | 'ERC1155'>;

/** An in-memory chain whose blocks can be replaced. Deterministic and without delays. */
export class MemoryChain {
  readonly #contracts: MemoryContracts;
  #blocks: MemoryBlock[] = [];
  #created = 0;
  #grants: { readonly role: string; readonly isGranted: boolean }[] = [];

  constructor(contracts: MemoryContracts) {
    this.#contracts = contracts;
    const state = {
      nonces: new Map(),
      roles: new Set<string>(),
      tokens: [],
      owned: new Set<string>(),
      nextIds: new Map(),
    };
    this.#blocks.push({ number: 0, hash: this.#hashOf('genesis'), state, transactions: [] });
  }

  get head(): MemoryBlock {
    return this.#blocks.at(-1)!;
  }

  get genesisHash(): string {
    return this.#blocks[0]!.hash;
  }

  blockAt(number: number): MemoryBlock | null {
    return this.#blocks[number] ?? null;
  }

  nonceOf(address: string, number = this.head.number): number {
    return this.blockAt(number)?.state.nonces.get(address) ?? 0;
  }

  receiptOf(hash: string): MintReceipt | null {
    for (const block of this.#blocks.toReversed())
      for (const { transaction, receipt } of block.transactions) if (transaction.hash === hash) return receipt;
    return null;
  }

  hashByNonce({ address, nonce }: { address: string; nonce: number }, to: number): string | null {
    for (const { transactions } of this.#blocks.slice(0, to + 1))
      for (const { transaction } of transactions)
        if (transaction.from === address && transaction.nonce === nonce) return transaction.hash;
    return null;
  }

  setRole(contract: string, address: string, isGranted: boolean): void {
    this.#grants.push({ role: `${contract}:${address}`, isGranted });
  }

  /** Removes the latest blocks. @returns their transactions, oldest first */
  removeBlocks(count: number): readonly MemoryTransaction[] {
    const removed = this.#blocks.splice(Math.max(1, this.#blocks.length - count));
    return removed.flatMap(({ transactions }) => transactions.map(({ transaction }) => transaction));
  }

  /** Creates a block from transactions with the next nonces, in the given order. @returns the included transactions */
  mine(offered: readonly MemoryTransaction[]): readonly MemoryTransaction[] {
    const before = this.head.state;
    const state: ChainState = {
      nonces: new Map(before.nonces),
      roles: new Set(before.roles),
      tokens: [...before.tokens],
      owned: new Set(before.owned),
      nextIds: new Map(before.nextIds),
    };
    for (const { role, isGranted } of this.#grants.splice(0)) state.roles[isGranted ? 'add' : 'delete'](role);
    const number = this.head.number + 1;
    const hash = this.#hashOf(`${this.head.hash}:${number}:${++this.#created}`);
    const transactions: MemoryBlock['transactions'][number][] = [];
    let logIndex = 0;
    for (const transaction of offered) {
      if (transaction.nonce !== (state.nonces.get(transaction.from) ?? 0)) continue;
      state.nonces.set(transaction.from, transaction.nonce + 1);
      const { isSuccess, logs } = this.#execute(state, transaction, logIndex);
      logIndex += logs.length;
      transactions.push({ transaction, receipt: { isSuccess, logs, blockNumber: number, blockHash: hash } });
    }
    this.#blocks.push({ number, hash, state, transactions });
    return transactions.map(({ transaction }) => transaction);
  }

  #hashOf(text: string): string {
    return `0x${createHash('sha256').update(text).digest('hex')}`;
  }

  #execute(state: ChainState, transaction: MemoryTransaction, firstLog: number) {
    const draft = { ...state, tokens: [...state.tokens], owned: new Set(state.owned), nextIds: new Map(state.nextIds) };
    try {
      const logs = this.#run(draft, transaction);
      if (gasOf(transaction.data) > transaction.gas) throw new Reverted('0x');
      state.tokens.splice(0, state.tokens.length, ...draft.tokens);
      for (const token of draft.owned) state.owned.add(token);
      for (const [contract, id] of draft.nextIds) state.nextIds.set(contract, id);
      return { isSuccess: true, logs: logs.map((log, at) => ({ ...log, logIndex: firstLog + at })) };
    } catch (fault) {
      if (fault instanceof Reverted) return { isSuccess: false, logs: [] };
      throw fault;
    }
  }

  callNode({ from, to, data }: Pick<MemoryTransaction, 'from' | 'to' | 'data'>) {
    const { state } = this.head;
    const draft = { ...state, tokens: [...state.tokens], owned: new Set(state.owned), nextIds: new Map(state.nextIds) };
    try {
      const result = this.#view(state, { to, data });
      if (result === null) this.#run(draft, { from, to, data });
      return { kind: 'done', value: result === null ? '0x' : toTopic(result ? 1n : 0n) } as const;
    } catch (fault) {
      if (fault instanceof Reverted) return { kind: 'reverted', message: toRefusalMessage(fault.data) } as const;
      throw fault;
    }
  }

  #view(state: ChainState, { to, data }: Pick<MemoryTransaction, 'to' | 'data'>): boolean | null {
    const { functionName, args } = decodeFunctionData({ abi: MINT_ABI, data: data as `0x${string}` });
    if (functionName === 'supportsInterface')
      return this.#contracts.get(to) === (args[0] === '0x80ac58cd' ? 'ERC721' : 'ERC1155');
    return functionName === 'hasRole' ? state.roles.has(`${to}:${args[1].toLowerCase()}`) : null;
  }

  #run(
    state: ChainState,
    { from, to, data }: Pick<MemoryTransaction, 'from' | 'to' | 'data'>,
  ): Omit<EventLog, 'logIndex'>[] {
    if (data === '0x') return [];
    const revert = (errorName: 'ERC721InvalidSender' | 'ERC721InvalidReceiver', address: string): never => {
      throw new Reverted(encodeErrorResult({ abi: ERRORS, errorName, args: [address as `0x${string}`] }));
    };
    if (!state.roles.has(`${to}:${from}`)) {
      const args = [from as `0x${string}`, ZERO_TOPIC as `0x${string}`] as const;
      throw new Reverted(encodeErrorResult({ abi: ERRORS, errorName: 'AccessControlUnauthorizedAccount', args }));
    }
    const addToken = (owner: string, tokenId: bigint, amount: bigint) => {
      if (owner === BAD_OWNER) revert('ERC721InvalidReceiver', owner);
      state.tokens.push({ contract: to, tokenId: tokenId.toString(), owner, amount });
    };
    const mint721 = (owner: string, tokenId: bigint) => {
      if (state.owned.has(`${to}:${tokenId}`)) revert('ERC721InvalidSender', `0x${'0'.repeat(40)}`);
      state.owned.add(`${to}:${tokenId}`);
      addToken(owner, tokenId, 1n);
      return { address: to, topics: [TRANSFER, ZERO_TOPIC, toTopic(owner), toTopic(tokenId)], data: '0x' };
    };
    const { functionName, args } = decodeFunctionData({ abi: MINT_ABI, data: data as `0x${string}` });
    if (functionName === 'mintBatch')
      return args[0].flatMap((mint) => mint.tokenIds.map((id) => mint721(mint.to.toLowerCase(), id)));
    if (functionName === 'mintBatchByQuantity')
      return args[0].flatMap((mint) =>
        Array.from({ length: Number(mint.quantity) }, () => {
          const id = state.nextIds.get(to) ?? FIRST_QUANTITY_ID;
          state.nextIds.set(to, id + 1n);
          return mint721(mint.to.toLowerCase(), id);
        }),
      );
    if (functionName !== 'safeMintBatch') throw new Reverted('0x');
    const [owner, ids, values] = args;
    for (const [at, id] of ids.entries()) addToken(owner.toLowerCase(), id, values[at]!);
    const topics = [TRANSFER_BATCH, toTopic(from), ZERO_TOPIC, toTopic(owner.toLowerCase())];
    return [
      { address: to, topics, data: encodeAbiParameters([{ type: 'uint256[]' }, { type: 'uint256[]' }], [ids, values]) },
    ];
  }
}

export const gasOf = (data: string): number => 30_000 + Math.ceil(data.length / 2) * 300;
