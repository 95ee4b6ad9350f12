/** Port to a chain node. Hashes and data are lower-case hexadecimal with `0x`. */
export interface ChainBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  /** Set by the producer of the block. */
  readonly timestampS: number;
  /** 256 bytes. */
  readonly logsBloom: Buffer;
}

export interface ChainLog {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly transactionIndex: number;
  readonly logIndex: number;
  readonly address: string;
  /** Up to four. */
  readonly topics: readonly string[];
  readonly data: string;
}

export interface ContractCall {
  readonly to: string;
  readonly data: string;
}

/** null when the contract failed; a NodeFault when the node did not execute the call. */
export type CallResult = string | null | NodeFault;

export type NodeFaultKind =
  /** No response, or an invalid response. */
  | 'unreachable'
  /** No response in time, and not retried. */
  | 'late'
  /** Rate limited. */
  | 'busy'
  /** Request fewer blocks or logs. */
  | 'too-much'
  /** The node does not have the block. */
  | 'behind'
  /** Responses contradict each other; one URL may serve several nodes. */
  | 'inconsistent'
  | 'other-chain';

/** Messages contain no part of the URL. */
export class NodeFault extends Error {
  override readonly name = 'NodeFault';
  readonly kind: NodeFaultKind;
  /** null when the node gives no time. */
  readonly retryAfterMs: number | null;

  constructor(kind: NodeFaultKind, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Every method may throw a NodeFault. Responses are well-formed, but may be wrong. */
export interface ChainNode {
  /** Contains no part of the URL. */
  readonly name: string;
  chainId(): Promise<number>;
  /** null for an unknown block, or when none is final. */
  block(at: 'latest' | 'finalized' | number): Promise<ChainBlock | null>;
  /** Inclusive, in order, without unknown blocks. */
  blocks(from: number, to: number): Promise<readonly ChainBlock[]>;
  /** In the given order, null for unknown blocks. One batch, if supported, so that one node responds. */
  blocksAt(numbers: readonly number[]): Promise<readonly (ChainBlock | null)[]>;
  logsOf(blockHash: string): Promise<readonly ChainLog[]>;
  /** From the receipts of the transactions: more data, for nodes that refuse `logsOf`. */
  logsByReceipts(blockHash: string): Promise<readonly ChainLog[]>;
  /** Inclusive. @throws NodeFault `too-much` */
  logsIn(from: number, to: number): Promise<readonly ChainLog[]>;
  /** At the latest block, with bounded gas. Throws only when all calls fail. */
  calls(calls: readonly ContractCall[]): Promise<readonly CallResult[]>;
}

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  /** Usually revert data. */
  readonly data: unknown;
}

export type RpcResponse =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError };

/** Calls any method. @throws NodeFault */
export type CallNode = (call: RpcCall) => Promise<unknown>;

/** Reverts (geth, erigon, reth) and failures (nethermind, OpenEthereum). */
const CONTRACT_CODES = new Set([3, -32015]);
/** Messages of common nodes for a failed contract. A contract's own message only follows "reverted". */
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

/** Every node returns this fault, so a retry changes nothing. */
export function isContractFault({ code, message }: Pick<RpcError, 'code' | 'message'>): boolean {
  return CONTRACT_CODES.has(code) || CONTRACT_FAULT.test(message);
}
