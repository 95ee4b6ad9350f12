import type { BlockName } from '@playline/chain';
import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';

/** One signer on one chain. */
export interface SignerLane {
  readonly chain: string;
  /** 20 bytes. */
  readonly signer: Buffer;
}

export type ForgottenTransaction = Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>;

/** Written atomically. */
export interface LaneChange {
  readonly states: readonly MintStateRecord[];
  readonly transactions: readonly MintTransactionRecord[];
  /** Transactions that become tombstones. */
  readonly forgotten: readonly ForgottenTransaction[];
}

export interface LaneWriter {
  /** Without transactions deleted by tombstones. */
  readTransactions(): Promise<readonly MintTransactionRecord[]>;
  /** In log order, possibly millions. Earlier states of an attempt may be missing. */
  readStates(): AsyncIterable<MintStateRecord>;
  /** Resolves when the change is committed. @throws Error when it is not, or when this is unknown: open a new writer */
  append(change: LaneChange): Promise<void>;
  close(): Promise<void>;
}

export interface MintLog {
  /** Fences other writers, then reads the log to its ends: an earlier writer can add nothing after them. */
  openWriter(lane: SignerLane): Promise<LaneWriter>;
  /** Signers with pending assets whose key maps to this partition of requests. */
  lanesOf(requests: { readonly partition: number; readonly partitions: number }): Promise<readonly SignerLane[]>;
  readonly others: OtherSigners;
}

export type ReferenceName = Pick<MintRequestRecord, 'contractAddress' | 'projectId' | 'referenceId'>;

/** Reference ids of all signers. A collection may have had several. */
export interface OtherSigners {
  /** Reads new states of all signers. @param options.isWhole waits for all existing states */
  sync(options: { readonly isWhole: boolean }): Promise<void>;
  /** Whether the reference id is pending or succeeded for another signer. */
  isHeldByOther(lane: SignerLane, request: ReferenceName): boolean;
  /** Whether the reference id is pending or succeeded for this signer. */
  isHeldByLane(lane: SignerLane, request: ReferenceName): boolean;
  /** Whether this attempt is pending. */
  isPending(lane: SignerLane, attempt: ReferenceName & Pick<MintRequestRecord, 'attemptId'>): boolean;
}

export interface ReceivedRequest {
  readonly request: MintRequestRecord;
  readonly partition: number;
  readonly offset: number;
}

/** The head of the chain, as one node reports it at one moment. */
export interface ChainHead {
  readonly number: number;
  /** Blocks up to this number never change. */
  readonly finalized: number;
  readonly finalizedHash: string;
  /** Base fee of the next block, in wei per unit of gas. */
  readonly baseFee: bigint;
  /** Hash of the previous final block; null: unknown or not requested. */
  readonly knownHash: string | null;
}

/** Lower-case hexadecimal. */
export interface EventLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
  readonly logIndex: number;
}

export interface MintReceipt {
  readonly isSuccess: boolean;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly logs: readonly EventLog[];
}

export interface ChainView {
  /** Counts only if its block is among these blocks. null: in no block. */
  readonly receipt: MintReceipt | null;
  /** In the requested order; null: unknown. */
  readonly blockHashes: readonly (string | null)[];
}

/** Lower-case hexadecimal. */
export interface ContractCall {
  readonly from: string;
  readonly to: string;
  readonly data: string;
}

export type CallOutcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** The contract's own message. */
  | { readonly kind: 'reverted'; readonly message: string }
  /** The call cannot be executed (out of gas, invalid code). Unless `isSure`, the node may have been too busy. */
  | { readonly kind: 'unrunnable'; readonly message: string; readonly isSure: boolean };

/** `spent`: the nonce is used; `refused`: never accepted; `later`: not now. */
export interface SendOutcome {
  readonly kind: 'taken' | 'known' | 'spent' | 'underpriced' | 'funds' | 'later' | 'refused';
}

export interface SpentNonce {
  readonly address: string;
  readonly nonce: number;
  readonly horizon: BlockName;
}

/** Hashes and addresses are lower-case hexadecimal. Every method may throw. */
export interface ChainNode {
  chainId(): Promise<number>;
  genesisHash(): Promise<string>;
  /** @param known number of the previous final block */
  head(known?: number): Promise<ChainHead>;
  /** Spent nonces up to each of these blocks, requested in this order. */
  spentNonces(address: string, at: readonly (number | 'latest' | 'pending')[]): Promise<readonly number[]>;
  receiptOf(hash: string): Promise<MintReceipt | null>;
  /** null: unknown block. */
  blockHashOf(number: number): Promise<string | null>;
  /** All from one branch, because one node responds. */
  viewOf(hash: string, blocks: readonly number[]): Promise<ChainView>;
  /** The transaction that spent a nonce, on the branch of the block. Null: not spent, or the state is too old. */
  spenderOf(spent: SpentNonce): Promise<string | null>;
  send(bytes: Buffer): Promise<SendOutcome>;
  call(call: ContractCall): Promise<CallOutcome<string>>;
  gasOf(call: ContractCall): Promise<CallOutcome<number>>;
  /** wei. */
  priorityFee(): Promise<bigint>;
  /** wei. */
  balanceOf(address: string): Promise<bigint>;
}

/** One node serves a whole turn, because two may be on different branches. */
export interface ChainNodes {
  readonly count: number;
  readonly current: ChainNode;
  /** Uses the next node, unless another caller has switched already. */
  skip(node: ChainNode): void;
}

/** wei per unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** A transaction of type 2, without its signature. */
export interface UnsignedTransaction extends Fees {
  readonly chainId: number;
  readonly nonce: number;
  /** Lower-case hexadecimal. */
  readonly to: string;
  readonly data: string;
  readonly gas: number;
}

export interface SignedTransaction {
  /** 32 bytes. */
  readonly hash: Buffer;
  /** The bytes as sent. */
  readonly bytes: Buffer;
}

export type KeyStatus = { readonly kind: 'live' } | { readonly kind: 'waits'; readonly reason: string };

export interface LaneSigner {
  /** Whether new transactions may begin for an environment. */
  status(environmentId: string): KeyStatus;
  /** @param options.isOpen its nonce is in use and must be finished, even with a disabled key @throws Error */
  sign(transaction: UnsignedTransaction, options: { readonly isOpen: boolean }): Promise<SignedTransaction>;
  /** Decodes logged bytes. */
  read(bytes: Buffer): UnsignedTransaction;
}

export interface ChainRules {
  readonly chainId: number;
  readonly gasMax: number;
  /** wei per unit of gas; nothing above is signed. */
  readonly feeMax: bigint;
  readonly priorityFeeMax: bigint;
  /** After this time, fees are raised. */
  readonly stuckAfterMs: number;
  readonly resendEveryMs: number;
  /** Nonces that are in no block. */
  readonly openNoncesMax: number;
  /** Nonces without a final transaction. */
  readonly unfinalNoncesMax: number;
  /** Assets per transaction. */
  readonly assetsMax: number;
}

/** Wall clock for records, and a monotonic clock. */
export interface LaneClock {
  wallClockMs(): number;
  monotonicMs(): number;
}
