/** The parts of a block that an indexer needs. Hashes are `0x` and 64 lower-case hexadecimal digits. */
export interface ChainBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  /** Epoch seconds, set by the producer of the block. */
  readonly timestampS: number;
  /** 256 bytes: bloom filter of its logs, to check that none is missing. */
  readonly logsBloom: Buffer;
}

/** A log that a contract emitted. Texts are lower-case hexadecimal with `0x`. */
export interface ChainLog {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly transactionIndex: number;
  /** Index within its block, from 0. */
  readonly logIndex: number;
  readonly address: string;
  /** Zero to four topics of 32 bytes. */
  readonly topics: readonly string[];
  readonly data: string;
}

/** A read-only call of a contract. */
export interface ContractCall {
  readonly to: string;
  /** Hexadecimal with `0x`. */
  readonly data: string;
}

/**
 * Hexadecimal with `0x`; null when the contract failed (it has no such function, reverts, or needs too much gas); a
 * `NodeFault` when the node did not carry out this call.
 */
export type CallResult = string | null | NodeFault;

/** What went wrong with a request to a node. */
export type NodeFaultKind =
  /** No answer, or an invalid one. */
  | 'unreachable'
  /** It accepted the request but did not answer in time. The request was not repeated. */
  | 'late'
  /** It refused the request because of its rate limit. */
  | 'busy'
  /** Too many blocks or logs in one request: ask for fewer. */
  | 'too-much'
  /** It does not know the block yet, or no longer. */
  | 'behind'
  /** Its answers contradict each other. Behind one URL may be several nodes, one of them with missing data. */
  | 'inconsistent'
  /** It is a node of another chain. */
  | 'other-chain';

/** A fault of a node. Its message contains no part of the URL, which may be a secret. */
export class NodeFault extends Error {
  override readonly name = 'NodeFault';
  readonly kind: NodeFaultKind;
  /** Milliseconds after which the node asks for a retry; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(kind: NodeFaultKind, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

/** One node of a chain. Every method may throw a `NodeFault`. Answers are well-formed, but may still be wrong. */
export interface ChainNode {
  /** For logs and metrics. Contains no part of the URL. */
  readonly name: string;
  /** The number behind `eip155:`. */
  chainId(): Promise<number>;
  /** Null when the node does not know the block, or when no block is final yet. */
  block(at: 'latest' | 'finalized' | number): Promise<ChainBlock | null>;
  /** @returns the blocks from `from` to `to`, inclusive, in order, without those that the node does not know */
  blocks(from: number, to: number): Promise<readonly ChainBlock[]>;
  /**
   * The blocks with these few numbers, in this order; null for each that the node does not know. They come from one
   * request if the node takes batches, so that one node answers all of it even if several share a URL.
   */
  blocksAt(numbers: readonly number[]): Promise<readonly (ChainBlock | null)[]>;
  /** All logs of one block. */
  logsOf(blockHash: string): Promise<readonly ChainLog[]>;
  /**
   * Like `logsOf`, from the receipts of the transactions: more data, but it works when a node refuses the list of logs.
   * There must be one receipt for each transaction of the block, in their order.
   */
  logsByReceipts(blockHash: string): Promise<readonly ChainLog[]>;
  /** All logs of the blocks from `from` to `to` inclusive. @throws NodeFault `too-much` */
  logsIn(from: number, to: number): Promise<readonly ChainLog[]>;
  /** Results of calls at the latest block, with bounded gas. Throws only when the node answers none of them. */
  calls(calls: readonly ContractCall[]): Promise<readonly CallResult[]>;
}

/** One call of JSON-RPC. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** An error object of JSON-RPC. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  /** Unchanged. Usually the data of a revert. */
  readonly data: unknown;
}

export type RpcAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError };

/** Calls any method of a node, also one with effects. @throws NodeFault */
export type CallNode = (call: RpcCall) => Promise<unknown>;

/** Codes of a reverted call (geth, erigon, reth) and of a failed one (nethermind, OpenEthereum). */
const CONTRACT_CODES = new Set([3, -32015]);
/**
 * How nodes report that a contract failed. A text of the contract itself only follows the word "reverted".
 * - geth, erigon, bsc: `execution reverted`, `out of gas`, `invalid opcode: INVALID`, `stack underflow (0 <=> 1)`,
 *   `invalid jump destination`, `write protection`, `return data out of bounds`, `gas uint64 overflow`
 * - reth, anvil: `EVM error: InvalidFEOpcode`, `EVM error OutOfGas`, `MemoryOOG`, `MemoryLimitOOG`, `StackUnderflow`,
 *   `out of gas: gas exhausted during memory expansion: …`
 * - nethermind: `BadInstruction`, `StackOverflow`, `InvalidJumpDestination`, `StaticCallViolation`, `AccessViolation`
 * - besu: `Execution reverted`, `Transaction processing could not be completed due to an exception (Invalid opcode: 0xfe)`
 * - hardhat, ganache: `VM Exception while processing transaction: revert`
 */
const CONTRACT_FAULT = new RegExp(
  [
    '\\b(execution|transaction|call)( was)? reverted|^(error: )?revert',
    'out ?of ?gas|OOG\\b|gas required exceeds|exceeds (the )?(block )?gas|gas cap|gas uint64 overflow',
    'stack ?(under|over)flow|stack (limit|error)|call ?too ?deep|call depth',
    'op ?code|(bad|invalid|undefined) ?instruction|invalid ?jump|bad ?jump|not ?activated|invalid ?code',
    'write protection|static ?call|state ?change ?during|access ?violation|out ?of ?bounds|out ?of ?offset',
    'precompile|vm exception|vm execution error|completed due to an exception|execution halted',
  ].join('|'),
  'i',
);

/** Whether the error of a call says that the contract failed. Every node returns this, so a retry changes nothing. */
export function isContractFault({ code, message }: Pick<RpcError, 'code' | 'message'>): boolean {
  return CONTRACT_CODES.has(code) || CONTRACT_FAULT.test(message);
}
