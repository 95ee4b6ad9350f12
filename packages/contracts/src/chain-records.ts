import type { ActivityType, VerificationStatus } from './limits.ts';
import { toHexText } from './texts.ts';

/** Value of `chain.activities.v1`, keyed by `chain`. Addresses are 20 bytes long. */
export interface ActivityRecord {
  chain: string;
  /**
   * A UUID, 16 bytes. A later record with this id is a new version; chain, type, contract and `indexedAt` never change.
   */
  id: Buffer;
  type: ActivityType;
  /** Contract of the asset. All assets of a sale have the same contract. */
  contractAddress: Buffer;
  /** Epoch microseconds, below 2^53 - 1. */
  indexedAt: number;
  blockchainMetadata: BlockchainMetadata | null;
  /** A JSON object with fields that depend on `type`. */
  details: string;
  traceId: string;
}

/** Position on the chain. Numbers are strings of decimal digits, as in the API. */
export interface BlockchainMetadata {
  /** 32 bytes. */
  transactionHash: Buffer;
  blockNumber: string;
  transactionIndex: string;
  logIndex: string | null;
}

/** Header of a record without a value that advances the watermark of an idle `chain.activities.v1` partition. */
export const TICK_HEADER = 'tick';

/** Value of `chain.tokens.v1`, keyed by chain and contract. Addresses are 20 bytes long. */
export interface TokenRecord {
  chain: string;
  contractAddress: Buffer;
  rootContractAddress: Buffer | null;
  symbol: string | null;
  decimals: number | null;
  imageUrl: string | null;
  name: string | null;
  verificationStatus: VerificationStatus;
  isCanonical: boolean;
  /** The id of the chain, not its name. */
  rootChainId: string | null;
  bridgeUsed: string | null;
  traceId: string;
}

/** Value of `chain.index-progress.v1`, keyed by `chain`. Hashes are 32 bytes long. */
export interface IndexProgressRecord {
  chain: string;
  /** All earlier blocks are indexed. */
  block: number;
  /** Hash of `block`. */
  hash: Buffer;
  /** Logs of `block` before this index are indexed; null if all are. */
  nextLog: number | null;
  /** Hash of the first block. It identifies the chain, because a recreated chain may have the same name. */
  genesisHash: Buffer;
  changedAt: number;
}

/** Value of `chain.mint-requests.v1`, keyed by chain and signer. Times are epoch milliseconds. */
export interface MintRequestRecord {
  chain: string;
  contractAddress: Buffer;
  /** The caller's id, unique within a collection. */
  referenceId: string;
  /** A UUID, 16 bytes. After a failure, the reference id can be used again, which creates a new attempt. */
  attemptId: Buffer;
  /** The address that sends the transaction. All records of a signer are in one partition. */
  signer: Buffer;
  projectId: string;
  environmentId: string;
  ownerAddress: Buffer;
  /** Decimal digits; null if the contract chooses the token id. */
  tokenId: string | null;
  /** Decimal digits; null for a single ERC-721 token. */
  amount: string | null;
  /** A JSON object. */
  metadata: string | null;
  requestedAt: number;
  traceId: string;
}

/** A mint is `settled` when its block is final, or when it failed without a transaction. */
export type MintStage = 'accepted' | 'waiting' | 'logged' | 'mined' | 'reverted' | 'settled';
export const MINT_STATUSES = ['pending', 'succeeded', 'failed'] as const;
export type MintStatus = (typeof MINT_STATUSES)[number];

/**
 * Value of `chain.mint-state.v1`, keyed by `toMintStateKey`. `toSignerKey` determines the partition, so that the states
 * of a signer are ordered. Metadata is omitted because minters keep all pending states in memory.
 */
export interface MintStateRecord extends Omit<MintRequestRecord, 'metadata'> {
  /** Starts at 1 and increases by 1 with each change. */
  revision: number;
  status: MintStatus;
  stage: MintStage;
  /** Why the mint is waiting, for operators. */
  reason: string | null;
  nonce: number | null;
  /** 32 bytes. */
  transactionHash: Buffer | null;
  /** UUID of the mint activity, 16 bytes. */
  activityId: Buffer | null;
  /** Why the mint failed, for the caller. */
  error: string | null;
  /** Partition and offset of the mint request. */
  requestPartition: number;
  requestOffset: number;
  changedAt: number;
}

export interface CarriedAsset {
  referenceId: string;
  attemptId: Buffer;
  tokenId: string | null;
  amount: string | null;
  ownerAddress: Buffer;
}

/**
 * Value of `chain.mint-transactions.v1`: a signed transaction, logged before it is sent. The key is
 * `toMintTransactionKey`; `toSignerKey` determines the partition.
 */
export interface MintTransactionRecord {
  chain: string;
  signer: Buffer;
  nonce: number;
  /** Starts at 0 and increases by 1 with each fee bump. All variants of a nonce contain the same call. */
  variant: number;
  /** `high_water` records the largest nonce logged for the signer. It is never compacted away. */
  kind: 'mint' | 'noop' | 'high_water';
  contractAddress: Buffer | null;
  /** In the order of the contract call. */
  assets: CarriedAsset[];
  /** 32 bytes. */
  hash: Buffer;
  /** Empty for `high_water`. */
  signedBytes: Buffer;
  gasLimit: number;
  /** Wei in decimal digits. */
  maxFeePerGas: string;
  maxPriorityFeePerGas: string;
  /** Hash of the chain's first block, 32 bytes. The signature is valid for this chain only. */
  genesisHash: Buffer;
  loggedAt: number;
}

/** Value of `chain.metadata.v1`, keyed by chain and contract. The latest record of a subject is current. */
export interface ChainMetadataRecord {
  chain: string;
  contractAddress: Buffer;
  kind: 'collection' | 'token' | 'stack';
  /** Token id or metadata id; '' for a collection. */
  subject: string;
  projectId: string;
  environmentId: string;
  /** A JSON object. */
  metadata: string;
  requestedAt: number;
  traceId: string;
}

/** The partition key for all records of a signer. */
export const toSignerKey = ({ chain, signer }: Pick<MintRequestRecord, 'chain' | 'signer'>): string =>
  `${chain}:${toHexText(signer)}`;

/** The reference id comes last, because it may contain any character. */
export const toMintStateKey = (
  state: Pick<MintStateRecord, 'chain' | 'contractAddress' | 'attemptId' | 'referenceId'>,
): string =>
  `${state.chain}:${toHexText(state.contractAddress)}:${state.attemptId.toString('hex')}:${state.referenceId}`;

/** All `high_water` records of a signer have the same key. */
export function toMintTransactionKey(
  transaction: Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>,
): string {
  const signer = toSignerKey(transaction);
  return transaction.kind === 'high_water'
    ? `${signer}:high-water`
    : `${signer}:${transaction.nonce}:${transaction.variant}`;
}
