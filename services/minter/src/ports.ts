import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';

/** One signer on one chain: whoever writes for it decides alone which nonce carries what. */
export interface SignerLane {
  /** Name of the chain. */
  readonly chain: string;
  /** 20 bytes. */
  readonly signer: Buffer;
}

/** A variant of a nonce that is not needed any more. */
export type ForgottenTransaction = Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>;

/** What is written in one transaction of the log: all of it or nothing. */
export interface LaneChange {
  readonly states: readonly MintStateRecord[];
  readonly transactions: readonly MintTransactionRecord[];
  /** Become tombstones. */
  readonly forgotten: readonly ForgottenTransaction[];
}

/** What stands of a signer, each kind in the order of the log. */
export interface LaneRecords {
  readonly states: readonly MintStateRecord[];
  /** Without those that have become tombstones. */
  readonly transactions: readonly MintTransactionRecord[];
}

/** The one writer of a signer. */
export interface LaneWriter {
  /** All that stood when everybody before was ended. */
  readonly standing: LaneRecords;
  /**
   * Resolves when it is known that all of it stands.
   * @throws Error when it does not stand, or when nobody knows: the writer is over then, and whoever goes on takes over
   */
  append(change: LaneChange): Promise<void>;
  close(): Promise<void>;
}

/** The logs of states and of transactions. */
export interface MintLog {
  /**
   * Ends whoever writes for the signer, then reads what stands, to the ends as they are after that. In the other order a
   * record of the one before could come behind what was read.
   */
  openWriter(lane: SignerLane): Promise<LaneWriter>;
  /** Signers with pending assets whose requests stand in a partition of the log of requests. */
  lanesOf(requests: { readonly partition: number; readonly partitions: number }): Promise<readonly SignerLane[]>;
  /** What all signers hold. */
  readonly others: OtherSigners;
}

/** Reference ids by the signers that hold them: a collection may have had several, and is one all the same. */
export interface OtherSigners {
  /**
   * Reads on in the states of all signers. @param options.isWhole to the end of all that stands at the call; else as far as
   * it can be read without waiting for anybody
   */
  look(options: { readonly isWhole: boolean }): Promise<void>;
  /** Whether another signer than that of the lane has an attempt that is pending or has succeeded, as of the last look. */
  hold(lane: SignerLane, request: Pick<MintRequestRecord, 'contractAddress' | 'referenceId'>): boolean;
  /** Whether the signer of the lane has an attempt that is pending or has succeeded, as of the last look. */
  holdsItself(lane: SignerLane, request: Pick<MintRequestRecord, 'contractAddress' | 'referenceId'>): boolean;
  /** Whether this very attempt of the signer of the lane is pending or has succeeded, as of the last look. */
  has(lane: SignerLane, attempt: Pick<MintRequestRecord, 'contractAddress' | 'referenceId' | 'attemptId'>): boolean;
}

/** A request and where it stands in its log. */
export interface PlacedRequest {
  readonly request: MintRequestRecord;
  readonly partition: number;
  readonly offset: number;
}

/** What a node says of its chain at a moment. */
export interface ChainHead {
  readonly number: number;
  /** Nothing up to this block changes any more. */
  readonly finalized: number;
  /** Of that block. */
  readonly finalizedHash: string;
  /** wei a unit of gas, of the next block. */
  readonly baseFee: bigint;
}

/** An event that a transaction has left. Hexadecimal, lower case. */
export interface EventLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly logIndex: number;
}

/** What became of a transaction that stands in a block. */
export interface MintReceipt {
  readonly isSuccess: boolean;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logs: readonly EventLog[];
}

/** What one node says at one moment, of a transaction and of blocks. */
export interface ChainView {
  /** Null: no block of the node has the transaction. */
  readonly receipt: MintReceipt | null;
  /** Of the blocks that were asked for, in their order; null: the node has no such block. */
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
  | { readonly kind: 'reverted'; readonly words: string }
  /**
   * It cannot be run at this size, and nothing was said by the contract: out of gas, code that is none. The words are ours.
   * Unless it is sure, it may be the node that has no time.
   */
  | { readonly kind: 'unrunnable'; readonly words: string; readonly isSure: boolean };

/**
 * What a node says to signed bytes. `spent`: the nonce is used, so somebody looks for the receipt; `refused`: these bytes
 * will never be taken; `later`: not now.
 */
export interface SendAnswer {
  readonly kind: 'taken' | 'known' | 'spent' | 'underpriced' | 'funds' | 'later' | 'refused';
}

/** A nonce of an address, and the block that nothing changes any more up to. */
export interface SpentNonce {
  readonly address: string;
  readonly nonce: number;
  readonly horizon: { readonly number: number; readonly hash: string };
}

/** A node of a chain. Hashes and addresses are hexadecimal in lower case. Every question may throw: the node did not answer. */
export interface ChainNode {
  /** The number behind `eip155:`. */
  chainId(): Promise<number>;
  genesisHash(): Promise<string>;
  head(): Promise<ChainHead>;
  /** How many nonces of an address are spent. */
  spentNonces(address: string, at: 'finalized' | 'latest' | 'pending'): Promise<number>;
  receiptOf(hash: string): Promise<MintReceipt | null>;
  /** Null: the node has no such block. */
  blockHashOf(number: number): Promise<string | null>;
  /**
   * A transaction and blocks as one node has them. Behind one address there may be several nodes, and two questions may be
   * answered by two of them: these are one.
   */
  viewOf(hash: string, blocks: readonly number[]): Promise<ChainView>;
  /**
   * The hash of the transaction that has spent a nonce, on the branch that ends with a block. Null: it is not spent there, or
   * the node cannot tell, as when it has no states of that time any more.
   */
  spenderOf(spent: SpentNonce): Promise<string | null>;
  send(bytes: Buffer): Promise<SendAnswer>;
  call(call: ContractCall): Promise<CallAnswer<string>>;
  gasOf(call: ContractCall): Promise<CallAnswer<number>>;
  /** wei a unit of gas that a transaction should leave to whoever makes blocks. */
  priorityFee(): Promise<bigint>;
  /** wei */
  balanceOf(address: string): Promise<bigint>;
}

/** Nodes of one chain. One answers a whole turn: what two of them say may be of two branches. */
export interface ChainNodes {
  readonly count: number;
  readonly current: ChainNode;
  /** The next one is asked from now on, unless that has happened already. */
  passOver(node: ChainNode): void;
}

/** wei a unit of gas. */
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
  /** As it is sent. */
  readonly bytes: Buffer;
}

/** Why a key may not begin anything. */
export type KeyStanding = { readonly kind: 'live' } | { readonly kind: 'waits'; readonly reason: string };

/** Signs for one address. */
export interface LaneSigner {
  /** Whether the key may begin something for an environment now. */
  standing(environmentId: string): KeyStanding;
  /**
   * Signs a transaction. @param options.isOpen its nonce has one already, which must end: also with a disabled key
   * @throws Error when the key cannot be used for that
   */
  sign(transaction: UnsignedTransaction, options: { readonly isOpen: boolean }): Promise<SignedTransaction>;
  /** What logged bytes carry. */
  read(bytes: Buffer): UnsignedTransaction;
}

/** What is set for a chain. */
export interface ChainRules {
  readonly chainId: number;
  /** Most gas of a transaction. */
  readonly gasMax: number;
  /** wei a unit of gas; nothing is ever signed with more. */
  readonly feeMax: bigint;
  readonly priorityFeeMax: bigint;
  /** After so long without a block a transaction's fees are raised. */
  readonly stuckAfterMs: number;
  /** How often what is in no block is sent again. */
  readonly resendEveryMs: number;
  /** Most nonces whose transactions stand in no block. */
  readonly openNoncesMax: number;
  /** Most nonces that are not spent for good, in blocks or not. */
  readonly unfinalNoncesMax: number;
  /** Most assets of a transaction. */
  readonly assetsMax: number;
}

/** Clocks of a lane: instants for records, and one that only goes forward. */
export interface LaneClock {
  wallClockMs(): number;
  monotonicMs(): number;
}
