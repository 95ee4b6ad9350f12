/** A block as far as an indexer needs it. Hashes are `0x` and 64 lower-case hexadecimal digits. */
export interface ChainBlock {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  /** Epoch seconds, by whoever made the block. */
  readonly timestampS: number;
  /** 256 bytes: tells what of its logs nobody may have left out. */
  readonly logsBloom: Buffer;
}

/** What a contract has said in a transaction. Texts are lower-case hexadecimal with `0x`. */
export interface ChainLog {
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly transactionIndex: number;
  /** Of its block, from 0. */
  readonly logIndex: number;
  readonly address: string;
  /** Zero to four of 32 bytes. */
  readonly topics: readonly string[];
  readonly data: string;
}

/** A call of a contract that changes nothing. */
export interface ContractCall {
  readonly to: string;
  /** Hexadecimal with `0x`. */
  readonly data: string;
}

/** Why a node did not answer as a node of this chain should. */
export type NodeFaultKind =
  /** No answer, or one that is none. */
  | 'unreachable'
  /** It took the question, and gave no answer within the time that it may take. Nobody has asked it again. */
  | 'late'
  /** It was asked too often. */
  | 'busy'
  /** It does not answer about so many blocks or logs at once: ask for fewer. */
  | 'too-much'
  /** It does not know of the block yet, or not any more. */
  | 'behind'
  /** Its answers do not belong together: several nodes behind one address, one of which has holes. */
  | 'inconsistent'
  /** It is a node of another chain. */
  | 'other-chain';

/** A node's fault. Its words hold nothing of its address, which may be a secret. */
export class NodeFault extends Error {
  override readonly name = 'NodeFault';
  readonly kind: NodeFaultKind;
  /** Milliseconds after which it asks to be asked again; null when it does not say. */
  readonly retryAfterMs: number | null;

  constructor(kind: NodeFaultKind, message: string, retryAfterMs: number | null = null) {
    super(message);
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

/** One node of a chain. Every call may throw a `NodeFault`. What it answers has the right form, and may still be wrong. */
export interface ChainNode {
  /** For logs and metrics: says nothing of the address. */
  readonly name: string;
  /** The number behind `eip155:`. */
  chainId(): Promise<number>;
  /** Null when it knows no such block: of `finalized` also when nothing is final yet. */
  block(at: 'latest' | 'finalized' | number): Promise<ChainBlock | null>;
  /** @returns those of the blocks that it knows, from `from` to `to` inclusive, in order */
  blocks(from: number, to: number): Promise<readonly ChainBlock[]>;
  /** All logs of one block. */
  logsOf(blockHash: string): Promise<readonly ChainLog[]>;
  /** As `logsOf`, by the receipts of its transactions: more to read, and what a node gives that refuses the list. */
  logsByReceipts(blockHash: string): Promise<readonly ChainLog[]>;
  /** All logs of the blocks from `from` to `to` inclusive. @throws NodeFault `too-much` */
  logsIn(from: number, to: number): Promise<readonly ChainLog[]>;
  /** Answers of calls as of the latest block, hexadecimal with `0x`; null for each that fails. */
  calls(calls: readonly ContractCall[]): Promise<readonly (string | null)[]>;
}
