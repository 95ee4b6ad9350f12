import type { ActivityType, VerificationStatus } from './enumerations.ts';

/** Value of `chain.activities.v1`, keyed by `chain`. Addresses have 20 bytes. */
export interface ActivityRecord {
  /** Name of the chain. */
  chain: string;
  /** 16 bytes of a UUID. The same id again is a new version: chain, type, contract and `indexedAt` stay as they were. */
  id: Buffer;
  type: ActivityType;
  /** Contract of the asset; of a sale that of all its assets. */
  contractAddress: Buffer;
  /** Epoch microseconds, below 2^53 - 1. */
  indexedAt: number;
  blockchainMetadata: BlockchainMetadata | null;
  /** JSON text of an object whose members depend on `type`; addresses in lower case. */
  details: string;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Where an activity stands on its chain. Numbers are decimal digits, as the interface shows them. */
export interface BlockchainMetadata {
  /** 32 bytes. */
  transactionHash: Buffer;
  blockNumber: string;
  transactionIndex: string;
  logIndex: string | null;
}

/**
 * Header of a record of `chain.activities.v1` without a value that is no activity: its own time says how far the partition
 * is known while nothing else is written there.
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
  /** Identifier of a chain, not its name. */
  rootChainId: string | null;
  bridgeUsed: string | null;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Value of `chain.index-progress.v1`, keyed by `chain`: the last record of a chain is true. Hashes have 32 bytes. */
export interface IndexProgressRecord {
  /** Name of the chain. */
  chain: string;
  /** Everything before it is indexed. */
  block: number;
  /** Of `block`. */
  hash: Buffer;
  /** Of `block` what stands before this log is indexed; null: all of it. */
  nextLog: number | null;
  /** Tells the chain from one that was made anew under its name. */
  genesisHash: Buffer;
  /** Epoch milliseconds. */
  changedAt: number;
}
