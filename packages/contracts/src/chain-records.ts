import type { ActivityType, VerificationStatus } from './enumerations.ts';

/** Value of `chain.activities.v1`, keyed by `chain`. Addresses have 20 bytes. */
export interface ActivityRecord {
  /** Name of the chain. */
  chain: string;
  /** 16 bytes of a UUID. A record with a known id is a new version: it keeps chain, type, contract and `indexedAt`. */
  id: Buffer;
  type: ActivityType;
  /** Contract of the asset. All assets of a sale have the same. */
  contractAddress: Buffer;
  /** Epoch microseconds, below 2^53 - 1. */
  indexedAt: number;
  blockchainMetadata: BlockchainMetadata | null;
  /** JSON text of an object whose members depend on `type`; addresses in lower case. */
  details: string;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Place of an activity on its chain. Numbers are decimal digits, as in the interface. */
export interface BlockchainMetadata {
  /** 32 bytes. */
  transactionHash: Buffer;
  blockNumber: string;
  transactionIndex: string;
  logIndex: string | null;
}

/**
 * Header that marks a tick on `chain.activities.v1`: a record without a value. Its timestamp is the watermark of a
 * partition to which nothing else is written.
 */
export const TICK_HEADER = 'tick';

/** Value of `chain.tokens.v1`, keyed by chain and contract. Addresses have 20 bytes. */
export interface TokenRecord {
  /** Name of the chain. */
  chain: string;
  contractAddress: Buffer;
  rootContractAddress: Buffer | null;
  symbol: string | null;
  decimals: number | null;
  imageUrl: string | null;
  name: string | null;
  verificationStatus: VerificationStatus;
  isCanonical: boolean;
  /** Id of a chain, not its name. */
  rootChainId: string | null;
  bridgeUsed: string | null;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Value of `chain.index-progress.v1`, keyed by `chain`. The last record of a chain counts. Hashes have 32 bytes. */
export interface IndexProgressRecord {
  /** Name of the chain. */
  chain: string;
  /** All earlier blocks are indexed. */
  block: number;
  /** Of `block`. */
  hash: Buffer;
  /** The logs of `block` before this index are indexed; null when the whole block is. */
  nextLog: number | null;
  /** Hash of the first block. It tells this chain from one that was restarted under the same name. */
  genesisHash: Buffer;
  /** Epoch milliseconds. */
  changedAt: number;
}
