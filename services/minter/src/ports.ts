import type { BlockName } from '@playline/chain';
import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';

/** One signer on one chain. Its single writer decides which nonce carries which assets. */
export interface SignerLane {
  /** Name of the chain. */
  readonly chain: string;
  /** 20 bytes. */
  readonly signer: Buffer;
}

/** A variant of a nonce that is no longer needed. */
export type ForgottenTransaction = Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>;

/** One transaction of the log: all of it is written or nothing. */
export interface LaneChange {
  readonly states: readonly MintStateRecord[];
  readonly transactions: readonly MintTransactionRecord[];
  /** These become tombstones. */
  readonly forgotten: readonly ForgottenTransaction[];
}

/** The single writer of a signer. */
export interface LaneWriter {
  /** Reads the transactions that existed once earlier writers were fenced, without those deleted by tombstones. */
  readTransactions(): Promise<readonly MintTransactionRecord[]>;
  /**
   * Reads the states that exist at the call, in the order of the log. There may be millions, so they are never kept
   * together. Of an attempt, earlier states than the last may be missing.
   */
  readStates(): AsyncIterable<MintStateRecord>;
  /**
   * Resolves when the change is known to be in the log.
   * @throws Error when it is not, or when that is unknown: the writer is then over and a new one must be opened
   */
  append(change: LaneChange): Promise<void>;
  close(): Promise<void>;
}

/** The logs of states and of transactions. */
export interface MintLog {
  /**
   * Fences any other writer of the signer, then reads the log to the ends that it has after that. In the other order an
   * earlier writer could add a record after what was read.
   */
  openWriter(lane: SignerLane): Promise<LaneWriter>;
  /** Signers with pending assets whose key gives this partition of the log of requests. */
  lanesOf(requests: { readonly partition: number; readonly partitions: number }): Promise<readonly SignerLane[]>;
  /** Reference ids that all signers use. */
  readonly others: OtherSigners;
}

/** Reference ids by signer. A collection may have had several signers, but its reference ids are unique across them. */
export interface OtherSigners {
  /**
   * Reads on in the states of all signers.
   * @param options.isWhole waits for all states that exist at the call; otherwise reads only what is available now
   */
  sync(options: { readonly isWhole: boolean }): Promise<void>;
  /** Whether another signer has an attempt of this reference id that is pending or succeeded, as of the last look. */
  isHeldByOther(
    lane: SignerLane,
    request: Pick<MintRequestRecord, 'contractAddress' | 'projectId' | 'referenceId'>,
  ): boolean;
  /** Whether the signer of the lane has an attempt that is pending or has succeeded, as of the last look. */
  isHeldByLane(
    lane: SignerLane,
    request: Pick<MintRequestRecord, 'contractAddress' | 'projectId' | 'referenceId'>,
  ): boolean;
  /** Whether this very attempt of the signer of the lane is pending, as of the last look. */
  isPending(
    lane: SignerLane,
    attempt: Pick<MintRequestRecord, 'contractAddress' | 'projectId' | 'referenceId' | 'attemptId'>,
  ): boolean;
}

/** A request and its place in its log. */
export interface ReceivedRequest {
  readonly request: MintRequestRecord;
  readonly partition: number;
  readonly offset: number;
}

/** The end of a chain, as one node reports it at one moment. */
export interface ChainHead {
  readonly number: number;
  /** The last final block: blocks up to it never change. */
  readonly finalized: number;
  /** Hash of that block. */
  readonly finalizedHash: string;
  /** Base fee of the next block, wei per unit of gas. */
  readonly baseFee: bigint;
  /** Hash of the block that was final before; null: the node has no such block, or none was asked for. */
  readonly knownHash: string | null;
}

/** An event of a transaction. Hexadecimal, lower case. */
export interface EventLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly logIndex: number;
}

/** The result of a transaction that is in a block. */
export interface MintReceipt {
  readonly isSuccess: boolean;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logs: readonly EventLog[];
}

/** Blocks of one branch, and the receipt of a transaction. */
export interface ChainView {
  /** It counts if its block is one of these. Null: no block of the node has the transaction. */
  readonly receipt: MintReceipt | null;
  /** Hashes of the requested blocks, in their order; null: the node has no such block. */
  readonly blockHashes: readonly (string | null)[];
}

/** A call of a contract; hexadecimal, lower case. */
export interface ContractCall {
  readonly from: string;
  readonly to: string;
  readonly data: string;
}

export type CallAnswer<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** The contract's own words. */
  | { readonly kind: 'reverted'; readonly message: string }
  /**
   * It cannot be executed at this size (out of gas, invalid code); the contract said nothing, so the words are ours.
   * Unless `isSure`, the node may have been too busy instead.
   */
  | { readonly kind: 'unrunnable'; readonly message: string; readonly isSure: boolean };

/**
 * A node's answer to signed bytes. `spent`: the nonce is used, so look for its receipt; `refused`: these bytes will
 * never be accepted; `later`: not now.
 */
export interface SendAnswer {
  readonly kind: 'taken' | 'known' | 'spent' | 'underpriced' | 'funds' | 'later' | 'refused';
}

/** A nonce of an address, and the last final block. */
export interface SpentNonce {
  readonly address: string;
  readonly nonce: number;
  readonly horizon: BlockName;
}

/** A node of a chain. Hashes and addresses are lower-case hexadecimal. Every method may throw: no answer came. */
export interface ChainNode {
  /** The number after `eip155:`. */
  chainId(): Promise<number>;
  genesisHash(): Promise<string>;
  /** @param known the number of a block that was final before */
  head(known?: number): Promise<ChainHead>;
  /**
   * How many nonces of an address are spent up to each of these blocks, asked for in this order.
   * @param at numbers of blocks or their names
   */
  spentNonces(address: string, at: readonly (number | 'latest' | 'pending')[]): Promise<readonly number[]>;
  receiptOf(hash: string): Promise<MintReceipt | null>;
  /** Null: the node has no such block. */
  blockHashOf(number: number): Promise<string | null>;
  /**
   * A transaction and blocks that are on one branch. Behind one address there may be several nodes, so two requests
   * could get answers from two of them.
   */
  viewOf(hash: string, blocks: readonly number[]): Promise<ChainView>;
  /**
   * The hash of the transaction that spent a nonce, on the branch of the given block. Null: it is not spent there, or
   * the node cannot tell, for example because it no longer has such old state.
   */
  spenderOf(spent: SpentNonce): Promise<string | null>;
  send(bytes: Buffer): Promise<SendAnswer>;
  call(call: ContractCall): Promise<CallAnswer<string>>;
  gasOf(call: ContractCall): Promise<CallAnswer<number>>;
  /** Suggested priority fee, wei per unit of gas. */
  priorityFee(): Promise<bigint>;
  /** Balance in wei. */
  balanceOf(address: string): Promise<bigint>;
}

/** Nodes of one chain. One node serves a whole turn, since two of them may be on different branches. */
export interface ChainNodes {
  readonly count: number;
  readonly current: ChainNode;
  /** Switches to the next node, unless that has happened already. */
  skip(node: ChainNode): void;
}

/** wei per unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A transaction of type 2 without its signature. */
export interface UnsignedTransaction extends Fees {
  readonly chainId: number;
  readonly nonce: number;
  /** Hexadecimal, lower case. */
  readonly to: string;
  readonly data: string;
  readonly gas: number;
}

export interface SignedTransaction {
  /** 32 bytes. */
  readonly hash: Buffer;
  /** The encoded bytes that are sent. */
  readonly bytes: Buffer;
}

/** Whether a key may begin new transactions, or why not. */
export type KeyStatus = { readonly kind: 'live' } | { readonly kind: 'waits'; readonly reason: string };

/** Signs for one address. */
export interface LaneSigner {
  /** Whether the key may begin new transactions for an environment now. */
  status(environmentId: string): KeyStatus;
  /**
   * @param options.isOpen its nonce is already in use and must be finished, also with a disabled key
   * @throws Error when the key cannot be used for that
   */
  sign(transaction: UnsignedTransaction, options: { readonly isOpen: boolean }): Promise<SignedTransaction>;
  /** Decodes logged bytes. */
  read(bytes: Buffer): UnsignedTransaction;
}

/** Settings of a chain. */
export interface ChainRules {
  readonly chainId: number;
  /** Maximum gas of a transaction. */
  readonly gasMax: number;
  /** wei per unit of gas; no transaction is ever signed with more. */
  readonly feeMax: bigint;
  readonly priorityFeeMax: bigint;
  /** The fees of a transaction that is in no block for this long are raised. */
  readonly stuckAfterMs: number;
  /** How often a transaction that is in no block is sent again. */
  readonly resendEveryMs: number;
  /** Maximum number of nonces whose transactions are in no block. */
  readonly openNoncesMax: number;
  /** Maximum number of nonces without a final transaction, in blocks or not. */
  readonly unfinalNoncesMax: number;
  /** Maximum number of assets in a transaction. */
  readonly assetsMax: number;
}

/** Clocks of a lane: wall-clock time for records, and a monotonic clock. */
export interface LaneClock {
  wallClockMs(): number;
  monotonicMs(): number;
}
