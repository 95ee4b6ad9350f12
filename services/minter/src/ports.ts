import type { BlockName } from '@playline/chain';
import type { MintRequestRecord, MintStateRecord, MintTransactionRecord } from '@playline/contracts';

/** One signer on one chain. */
export interface SignerLane {
  readonly chain: string;
  /** The address, 20 bytes. */
  readonly signer: Buffer;
}

export type ForgottenTransaction = Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>;

/** A change that is written atomically. */
export interface LaneChange {
  readonly states: readonly MintStateRecord[];
  readonly transactions: readonly MintTransactionRecord[];
  /** Transactions to be replaced by tombstones. */
  readonly forgotten: readonly ForgottenTransaction[];
}

export interface LaneWriter {
  /** Omits transactions that tombstones have deleted. */
  readTransactions(): Promise<readonly MintTransactionRecord[]>;
  /** Yields states in log order, possibly millions. An attempt's earlier states may be missing. */
  readStates(): AsyncIterable<MintStateRecord>;
  /** Resolves when the change is committed. @throws Error if this is unknown; a new writer must then be opened */
  append(change: LaneChange): Promise<void>;
  close(): Promise<void>;
}

export interface MintLog {
  /** Fences the signer's other writers, then reads the log to the end, so no earlier writer can append after it. */
  openWriter(lane: SignerLane): Promise<LaneWriter>;
  /** Returns the signers with pending assets whose key maps to this request partition. */
  lanesOf(requests: { readonly partition: number; readonly partitions: number }): Promise<readonly SignerLane[]>;
  readonly others: OtherSigners;
}

export type ReferenceName = Pick<MintRequestRecord, 'contractAddress' | 'projectId' | 'referenceId'>;

/** Reference ids used by all signers, because a collection may have had several signers. */
export interface OtherSigners {
  /** Reads all signers' new states. @param options.isWhole whether to wait for all existing states */
  sync(options: { readonly isWhole: boolean }): Promise<void>;
  /** Whether the reference id is pending or was minted with another signer. */
  isHeldByOther(lane: SignerLane, request: ReferenceName): boolean;
  /** Whether the reference id is pending or was minted with this signer. */
  isHeldByLane(lane: SignerLane, request: ReferenceName): boolean;
  /** Whether this attempt is pending. */
  isPending(lane: SignerLane, attempt: ReferenceName & Pick<MintRequestRecord, 'attemptId'>): boolean;
}

export interface ReceivedRequest {
  readonly request: MintRequestRecord;
  readonly partition: number;
  readonly offset: number;
}

/** The chain head, as one node reports it at one point in time. */
export interface ChainHead {
  readonly number: number;
  /** Blocks up to this number never change. */
  readonly finalized: number;
  readonly finalizedHash: string;
  /** The next block's base fee, in wei per unit of gas. */
  readonly baseFee: bigint;
  /** The hash of the previous final block, or null if unknown or not requested. */
  readonly knownHash: string | null;
}

/** All strings are lower-case hexadecimal. */
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
  /** Valid only if its block is among these blocks. null if the transaction is not in a block. */
  readonly receipt: MintReceipt | null;
  /** In the requested order, null if unknown. */
  readonly blockHashes: readonly (string | null)[];
}

/** All strings are lower-case hexadecimal. */
export interface ContractCall {
  readonly from: string;
  readonly to: string;
  readonly data: string;
}

export type CallOutcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  /** The contract's own message. */
  | { readonly kind: 'reverted'; readonly message: string }
  /** The call cannot be executed (out of gas, invalid code). If not `isCertain`, the node may have been too busy. */
  | { readonly kind: 'unrunnable'; readonly message: string; readonly isCertain: boolean };

/** `nonce-used`: a block contains the nonce. `refused`: the bytes are never accepted. `deferred`: not accepted now. */
export interface SendOutcome {
  readonly kind: 'accepted' | 'known' | 'nonce-used' | 'underpriced' | 'unfunded' | 'deferred' | 'refused';
}

export interface UsedNonce {
  readonly address: string;
  readonly nonce: number;
  readonly horizon: BlockName;
}

/** Port to a chain node. Hashes and addresses are lower-case hexadecimal. Every method may throw. */
export interface ChainNode {
  chainId(): Promise<number>;
  genesisHash(): Promise<string>;
  /** @param known the number of the previous final block */
  head(known?: number): Promise<ChainHead>;
  /** Returns the address's transaction count at each of these blocks, requested in this order. */
  nonceCounts(address: string, at: readonly (number | 'latest' | 'pending')[]): Promise<readonly number[]>;
  receiptOf(hash: string): Promise<MintReceipt | null>;
  /** Returns null if the block is unknown. */
  blockHashOf(number: number): Promise<string | null>;
  /** Reads a receipt and blocks from one branch. */
  viewOf(hash: string, blocks: readonly number[]): Promise<ChainView>;
  /** Finds the transaction that used a nonce on the horizon's branch. null if unused, or if the state is too old. */
  hashByNonce(used: UsedNonce): Promise<string | null>;
  send(bytes: Buffer): Promise<SendOutcome>;
  call(call: ContractCall): Promise<CallOutcome<string>>;
  gasOf(call: ContractCall): Promise<CallOutcome<number>>;
  /** In wei. */
  priorityFee(): Promise<bigint>;
  /** In wei. */
  balanceOf(address: string): Promise<bigint>;
}

/** A chain's nodes. A whole turn uses one node, because two nodes may be on different branches. */
export interface ChainNodes {
  readonly count: number;
  readonly current: ChainNode;
  /** Switches to the next node, unless another caller already did. */
  skip(node: ChainNode): void;
}

/** In wei per unit of gas. */
export interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** An unsigned EIP-1559 transaction. */
export interface UnsignedTransaction extends Fees {
  readonly chainId: number;
  readonly nonce: number;
  /** Lower-case hexadecimal. */
  readonly to: string;
  readonly data: string;
  readonly gas: number;
}

export interface SignedTransaction {
  /** Always 32 bytes. */
  readonly hash: Buffer;
  /** The bytes to send. */
  readonly bytes: Buffer;
}

export type KeyStatus = { readonly kind: 'live' } | { readonly kind: 'blocked'; readonly reason: string };

export interface LaneSigner {
  /** Whether an environment may begin new transactions. */
  status(environmentId: string): KeyStatus;
  /** @param options.isOpen whether the nonce is in use and must be settled even with a disabled key @throws Error */
  sign(transaction: UnsignedTransaction, options: { readonly isOpen: boolean }): Promise<SignedTransaction>;
  /** Decodes logged bytes. */
  read(bytes: Buffer): UnsignedTransaction;
}

export interface ChainRules {
  readonly chainId: number;
  readonly gasMax: number;
  /** In wei per unit of gas. Transactions with higher fees are not signed. */
  readonly feeMax: bigint;
  readonly priorityFeeMax: bigint;
  /** Fees are raised after this time. */
  readonly stuckAfterMs: number;
  readonly resendEveryMs: number;
  /** Maximum nonces whose transaction is not in a block. */
  readonly openNoncesMax: number;
  /** Maximum nonces without a final transaction. */
  readonly unfinalNoncesMax: number;
  /** Maximum assets per transaction. */
  readonly assetsMax: number;
}

/** A wall clock for records, and a monotonic clock for intervals. */
export interface LaneClock {
  wallClockMs(): number;
  monotonicMs(): number;
}
