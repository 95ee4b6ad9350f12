import type { ActivityType, VerificationStatus } from './limits.ts';
import { toHexText } from './texts.ts';

/** Value of `chain.activities.v1`, keyed by `chain`. Addresses have 20 bytes. */
export interface ActivityRecord {
  chain: string;
  /**
   * 16 bytes of a UUID. A later record of an id is a new version with the same chain, type, contract and `indexedAt`.
   */
  id: Buffer;
  type: ActivityType;
  /** Contract of the asset; one for all assets of a sale. */
  contractAddress: Buffer;
  /** Epoch microseconds, below 2^53 - 1. */
  indexedAt: number;
  blockchainMetadata: BlockchainMetadata | null;
  /** JSON text; its members depend on `type`. */
  details: string;
  traceId: string;
}

/** Position on the chain. Numbers are decimal digits, as in the interface. */
export interface BlockchainMetadata {
  /** 32 bytes. */
  transactionHash: Buffer;
  blockNumber: string;
  transactionIndex: string;
  logIndex: string | null;
}

/** Marks a record without a value whose timestamp is the watermark of an idle partition of `chain.activities.v1`. */
export const TICK_HEADER = 'tick';

/** Value of `chain.tokens.v1`, keyed by chain and contract. Addresses have 20 bytes. */
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
  /** Id of a chain, not its name. */
  rootChainId: string | null;
  bridgeUsed: string | null;
  traceId: string;
}

/** Value of `chain.index-progress.v1`, keyed by `chain`. Hashes have 32 bytes. */
export interface IndexProgressRecord {
  chain: string;
  /** All earlier blocks are indexed. */
  block: number;
  /** Of `block`. */
  hash: Buffer;
  /** Logs of `block` before this index are indexed; null when all are. */
  nextLog: number | null;
  /** Hash of the first block: another one is another chain of the same name. */
  genesisHash: Buffer;
  changedAt: number;
}

/** Value of `chain.mint-requests.v1`, keyed by chain and signer. Addresses have 20 bytes, times are epoch milliseconds. */
export interface MintRequestRecord {
  chain: string;
  contractAddress: Buffer;
  /** The caller's id, unique in a collection. */
  referenceId: string;
  /** 16 bytes of a UUID. A failed reference id may be accepted again as another attempt. */
  attemptId: Buffer;
  /** Address that sends the transaction. All records of a signer are in one partition. */
  signer: Buffer;
  projectId: string;
  environmentId: string;
  ownerAddress: Buffer;
  /** Decimal digits; null when the contract chooses. */
  tokenId: string | null;
  /** Decimal digits; null for a single token of an ERC-721. */
  amount: string | null;
  /** JSON text. */
  metadata: string | null;
  requestedAt: number;
  traceId: string;
}

/** `settled`: final, because the block is final or no transaction ever carried the mint. */
export type MintStage = 'accepted' | 'waiting' | 'logged' | 'mined' | 'reverted' | 'settled';
export const MINT_STATUSES = ['pending', 'succeeded', 'failed'] as const;
export type MintStatus = (typeof MINT_STATUSES)[number];

/**
 * Value of `chain.mint-state.v1`, keyed by `toMintStateKey` in the partition of `toSignerKey`, so that the log orders
 * the states of a signer. Without metadata, because minters keep all pending states in memory.
 */
export interface MintStateRecord extends Omit<MintRequestRecord, 'metadata'> {
  /** 1, then one more with each change. */
  revision: number;
  status: MintStatus;
  stage: MintStage;
  /** Why it waits, for operators. */
  reason: string | null;
  nonce: number | null;
  /** 32 bytes. */
  transactionHash: Buffer | null;
  /** 16 bytes of a UUID: the activity of the mint. */
  activityId: Buffer | null;
  /** Why it failed, for the caller. */
  error: string | null;
  /** Partition and offset of the request. */
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
 * Value of `chain.mint-transactions.v1`: a signed transaction, logged before it is sent. Keyed by
 * `toMintTransactionKey`, in the partition of `toSignerKey`.
 */
export interface MintTransactionRecord {
  chain: string;
  signer: Buffer;
  nonce: number;
  /** 0, then one more with each fee bump. All variants of a nonce carry the same call. */
  variant: number;
  /** `high_water`: the largest nonce ever logged for the signer; never compacted away. */
  kind: 'mint' | 'noop' | 'high_water';
  contractAddress: Buffer | null;
  /** In the order of the contract call. */
  assets: CarriedAsset[];
  /** 32 bytes. */
  hash: Buffer;
  /** Empty for a high water. */
  signedBytes: Buffer;
  gasLimit: number;
  /** wei, decimal digits. */
  maxFeePerGas: string;
  maxPriorityFeePerGas: string;
  /** 32 bytes: hash of the first block of the signed chain. */
  genesisHash: Buffer;
  loggedAt: number;
}

/** Value of `chain.metadata.v1`, keyed by chain and contract. The last record of a subject counts. */
export interface ChainMetadataRecord {
  chain: string;
  contractAddress: Buffer;
  kind: 'collection' | 'token' | 'stack';
  /** Token id or metadata id; '' for a collection. */
  subject: string;
  projectId: string;
  environmentId: string;
  /** JSON text. */
  metadata: string;
  requestedAt: number;
  traceId: string;
}

/** Partition key of every record of a signer. */
export const toSignerKey = ({ chain, signer }: Pick<MintRequestRecord, 'chain' | 'signer'>): string =>
  `${chain}:${toHexText(signer)}`;

/** The reference id comes last, because it may contain any character. */
export const toMintStateKey = (
  state: Pick<MintStateRecord, 'chain' | 'contractAddress' | 'attemptId' | 'referenceId'>,
): string =>
  `${state.chain}:${toHexText(state.contractAddress)}:${state.attemptId.toString('hex')}:${state.referenceId}`;

/** All high waters of a signer share one key. */
export function toMintTransactionKey(
  transaction: Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>,
): string {
  const signer = toSignerKey(transaction);
  return transaction.kind === 'high_water'
    ? `${signer}:high-water`
    : `${signer}:${transaction.nonce}:${transaction.variant}`;
}
