import type { ActivityType, VerificationStatus } from './limits.ts';
import { toHexText } from './texts.ts';

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

/** Value of `chain.mint-requests.v1`, keyed by chain and signer. Addresses have 20 bytes, times are epoch milliseconds. */
export interface MintRequestRecord {
  /** Name of the chain. */
  chain: string;
  contractAddress: Buffer;
  /** The caller's id of the asset, unique within a collection. */
  referenceId: string;
  /** 16 bytes of a UUID. Identifies this acceptance: a reference id that failed may be accepted again. */
  attemptId: Buffer;
  /** Address whose transactions mint it. All records of a signer are in one partition. */
  signer: Buffer;
  projectId: string;
  environmentId: string;
  ownerAddress: Buffer;
  /** Decimal digits; null when the contract chooses. */
  tokenId: string | null;
  /** Decimal digits; null for a single token of an ERC-721. */
  amount: string | null;
  /** JSON text of an object. */
  metadata: string | null;
  requestedAt: number;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** `settled` when nothing can change any more: the block is final, or no transaction ever carried the mint. */
export type MintStage = 'accepted' | 'waiting' | 'logged' | 'mined' | 'reverted' | 'settled';
export const MINT_STATUSES = ['pending', 'succeeded', 'failed'] as const;
export type MintStatus = (typeof MINT_STATUSES)[number];

/**
 * Value of `chain.mint-state.v1`. The last record of a reference id and attempt counts. Keyed by `toMintStateKey`, in
 * the partition of `toSignerKey`, so the log orders all states of a signer. Without the metadata, which can be 16 KiB:
 * minters keep all pending states in memory.
 */
export interface MintStateRecord extends Omit<MintRequestRecord, 'metadata'> {
  /** 1, and one more with each change of the attempt. */
  revision: number;
  status: MintStatus;
  stage: MintStage;
  /** Why it waits, for operators. */
  reason: string | null;
  /** Nonce of the transaction that carries it. */
  nonce: number | null;
  /** 32 bytes. */
  transactionHash: Buffer | null;
  /** 16 bytes of a UUID: the activity of the mint in the history. */
  activityId: Buffer | null;
  /** Why it failed, for the caller. */
  error: string | null;
  /** Place of the request in its log. */
  requestPartition: number;
  requestOffset: number;
  changedAt: number;
}

/** An asset that a transaction mints. */
export interface CarriedAsset {
  referenceId: string;
  attemptId: Buffer;
  tokenId: string | null;
  amount: string | null;
  ownerAddress: Buffer;
}

/**
 * Value of `chain.mint-transactions.v1`: a signed transaction, logged before it is sent anywhere. Keyed by
 * `toMintTransactionKey`, in the partition of `toSignerKey`.
 */
export interface MintTransactionRecord {
  /** Name of the chain. */
  chain: string;
  signer: Buffer;
  nonce: number;
  /** 0, and one more with each raise of the fees. All variants of a nonce carry the same call. */
  variant: number;
  /** `high_water` records the largest nonce ever logged for the signer. Compaction never removes it. */
  kind: 'mint' | 'noop' | 'high_water';
  contractAddress: Buffer | null;
  /** In the order of the contract call. */
  assets: CarriedAsset[];
  /** 32 bytes. */
  hash: Buffer;
  /** The bytes that are sent; empty for a high water. */
  signedBytes: Buffer;
  gasLimit: number;
  /** wei, decimal digits. */
  maxFeePerGas: string;
  /** wei, decimal digits. */
  maxPriorityFeePerGas: string;
  /** 32 bytes: hash of the first block of the chain that it was signed for. */
  genesisHash: Buffer;
  loggedAt: number;
}

/** Value of `chain.metadata.v1`, keyed by chain and contract. The last record of a subject counts. */
export interface ChainMetadataRecord {
  /** Name of the chain. */
  chain: string;
  contractAddress: Buffer;
  kind: 'collection' | 'token' | 'stack';
  /** Token id or metadata id; '' for a collection. */
  subject: string;
  projectId: string;
  environmentId: string;
  /** JSON text of an object. */
  metadata: string;
  requestedAt: number;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** Text that the partition of every record of a signer is computed from, and the key of its mint requests. */
export const toSignerKey = ({ chain, signer }: Pick<MintRequestRecord, 'chain' | 'signer'>): string =>
  `${chain}:${toHexText(signer)}`;

/** Key of a state. The reference id comes last, because it may contain any character. */
export const toMintStateKey = (
  state: Pick<MintStateRecord, 'chain' | 'contractAddress' | 'attemptId' | 'referenceId'>,
): string =>
  `${state.chain}:${toHexText(state.contractAddress)}:${state.attemptId.toString('hex')}:${state.referenceId}`;

/** Key of a logged transaction. All high waters of a signer share one key. */
export function toMintTransactionKey(
  transaction: Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>,
): string {
  const signer = toSignerKey(transaction);
  return transaction.kind === 'high_water'
    ? `${signer}:high-water`
    : `${signer}:${transaction.nonce}:${transaction.variant}`;
}
