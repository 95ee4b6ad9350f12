/** A block header. Hashes and data in this port are lower-case hexadecimal strings with `0x`. */
export interface ChainBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  /** Set by the block producer. */
  readonly timestampS: number;
  /** Always 256 bytes. */
  readonly logsBloom: Buffer;
}

export interface ChainLog {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly transactionIndex: number;
  readonly logIndex: number;
  readonly address: string;
  /** At most four. */
  readonly topics: readonly string[];
  readonly data: string;
}

export interface ContractCall {
  readonly to: string;
  readonly data: string;
}

/** null if the contract failed, or a NodeFault if the node did not execute the call. */
export type CallResult = string | null | NodeFault;

export type NodeFaultKind =
  /** No response, or an invalid response. */
  | 'unreachable'
  /** No response within the timeout. Not retried. */
  | 'timeout'
  /** Rate limited. */
  | 'busy'
  /** The caller must request fewer blocks or logs. */
  | 'too-large'
  /** The node does not have the block. */
  | 'behind'
  /** The responses contradict each other. Several nodes may share one URL. */
  | 'inconsistent'
  | 'other-chain';

/** Messages never contain any part of the URL. */
export class NodeFault extends Error {
  override readonly name = 'NodeFault';
  readonly kind: NodeFaultKind;
  /** null if the node does not specify a time. */
  readonly retryAfterMs: number | null;

  constructor(kind: NodeFaultKind, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Port to a chain node. Every method may throw a NodeFault. Responses are well-formed, but may be incorrect. */
export interface ChainNode {
  /** Never contains any part of the URL. */
  readonly name: string;
  chainId(): Promise<number>;
  /** Returns null if the block is unknown, or if no block is final. */
  block(at: 'latest' | 'finalized' | number): Promise<ChainBlock | null>;
  /** Returns the blocks of an inclusive range in order, without unknown blocks. */
  blocks(from: number, to: number): Promise<readonly ChainBlock[]>;
  /** Returns blocks in the given order, null if unknown. Uses one batch if supported, so that one node responds. */
  blocksAt(numbers: readonly number[]): Promise<readonly (ChainBlock | null)[]>;
  logsOf(blockHash: string): Promise<readonly ChainLog[]>;
  /** Reads the logs from the transaction receipts: more data, but works with nodes that refuse `logsOf`. */
  logsByReceipts(blockHash: string): Promise<readonly ChainLog[]>;
  /** Returns the logs of an inclusive range. @throws NodeFault `too-large` */
  logsIn(from: number, to: number): Promise<readonly ChainLog[]>;
  /** Calls contracts at the latest block with limited gas. Throws only if the whole request fails. */
  calls(calls: readonly ContractCall[]): Promise<readonly CallResult[]>;
}

export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  /** Usually the revert data. */
  readonly data: unknown;
}

export type RpcResponse =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: RpcError };

/** Calls an arbitrary JSON-RPC method. @throws NodeFault */
export type CallNode = (call: RpcCall) => Promise<unknown>;

/** Error codes for reverts (geth, erigon, reth) and for failed executions (nethermind, OpenEthereum). */
const CONTRACT_CODES = new Set([3, -32015]);
/** How common nodes report a failed contract. A contract's own message appears only after "reverted". */
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

/** Detects an error that every node would return, so retrying is pointless. */
export function isContractFault({ code, message }: Pick<RpcError, 'code' | 'message'>): boolean {
  return CONTRACT_CODES.has(code) || CONTRACT_FAULT.test(message);
}
