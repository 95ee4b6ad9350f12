/** Value of `chain.mint-requests.v1`, keyed by chain and signer. Addresses have 20 bytes, times are epoch milliseconds. */
export interface MintRequestRecord {
  /** Name of the chain. */
  chain: string;
  contractAddress: Buffer;
  /** What the caller calls the asset; of one collection. */
  referenceId: string;
  /** 16 bytes of a UUID: of this acceptance. A reference id that failed may be accepted again. */
  attemptId: Buffer;
  /** Whose transactions mint it: the records of one signer stand in one partition. */
  signer: Buffer;
  projectId: string;
  environmentId: string;
  ownerAddress: Buffer;
  /** Decimal digits; null: the contract chooses. */
  tokenId: string | null;
  /** Decimal digits; null: one token of an ERC-721. */
  amount: string | null;
  /** JSON text of an object. */
  metadata: string | null;
  requestedAt: number;
  /** 32 lower-case hex characters. */
  traceId: string;
}

/** `settled` when nothing can change any more: behind the finality horizon, or never carried by any transaction. */
export type MintStage = 'accepted' | 'waiting' | 'logged' | 'mined' | 'reverted' | 'settled';
export type MintStatus = 'pending' | 'succeeded' | 'failed';

/**
 * Value of `chain.mint-state.v1`: the last record of a reference id and attempt is true. Keyed by `toMintStateKey`, in the
 * partition that `toSignerKey` falls in, so the states of one signer are in one order.
 */
export interface MintStateRecord extends MintRequestRecord {
  /** 1, and one more with each change of the attempt. */
  revision: number;
  status: MintStatus;
  stage: MintStage;
  /** Why it waits, for people. */
  reason: string | null;
  /** Of the transaction that carries it. */
  nonce: number | null;
  /** 32 bytes. */
  transactionHash: Buffer | null;
  /** 16 bytes of a UUID: the activity that the mint is in the history. */
  activityId: Buffer | null;
  /** Why it failed, for the caller. */
  error: string | null;
  /** Where the request stands in its log. */
  requestPartition: number;
  requestOffset: number;
  changedAt: number;
}

/** An asset in a transaction. */
export interface CarriedAsset {
  referenceId: string;
  attemptId: Buffer;
  tokenId: string | null;
  amount: string | null;
  ownerAddress: Buffer;
}

/**
 * Value of `chain.mint-transactions.v1`: a signed transaction, which stands here before it is sent anywhere. Keyed by
 * `toMintTransactionKey`, in the partition that `toSignerKey` falls in.
 */
export interface MintTransactionRecord {
  /** Name of the chain. */
  chain: string;
  signer: Buffer;
  nonce: number;
  /** 0, and one more with each raise of the fees. All variants of a nonce carry the same call. */
  variant: number;
  /** `high_water`: the largest nonce that was ever logged for the signer, a record of its own that stays. */
  kind: 'mint' | 'noop' | 'high_water';
  contractAddress: Buffer | null;
  /** In the order of the call. */
  assets: CarriedAsset[];
  /** 32 bytes. */
  hash: Buffer;
  /** As they are sent; none of a high water. */
  signedBytes: Buffer;
  gasLimit: number;
  /** wei, decimal digits. */
  maxFeePerGas: string;
  /** wei, decimal digits. */
  maxPriorityFeePerGas: string;
  /** 32 bytes: of the chain that it was signed for. */
  genesisHash: Buffer;
  loggedAt: number;
}

/** Value of `chain.metadata.v1`, keyed by chain and contract: of one subject the last record is true. */
export interface ChainMetadataRecord {
  /** Name of the chain. */
  chain: string;
  contractAddress: Buffer;
  kind: 'collection' | 'token' | 'stack';
  /** Token id or metadata id; '' of a collection. */
  subject: string;
  projectId: string;
  environmentId: string;
  /** JSON text of an object. */
  metadata: string;
  requestedAt: number;
  /** 32 lower-case hex characters. */
  traceId: string;
}

const toAddressText = (address: Buffer) => `0x${address.toString('hex')}`;

/** What decides the partition of every record of a signer, and the key of its mint requests. */
export const toSignerKey = ({ chain, signer }: Pick<MintRequestRecord, 'chain' | 'signer'>): string =>
  `${chain}:${toAddressText(signer)}`;

/** Key of a state. A reference id may have any character, so it stands last. */
export const toMintStateKey = (
  state: Pick<MintStateRecord, 'chain' | 'contractAddress' | 'attemptId' | 'referenceId'>,
): string =>
  `${state.chain}:${toAddressText(state.contractAddress)}:${state.attemptId.toString('hex')}:${state.referenceId}`;

/** Key of a logged transaction; a high water has one for all nonces. */
export function toMintTransactionKey(
  transaction: Pick<MintTransactionRecord, 'chain' | 'signer' | 'nonce' | 'variant' | 'kind'>,
): string {
  const signer = toSignerKey(transaction);
  return transaction.kind === 'high_water'
    ? `${signer}:high-water`
    : `${signer}:${transaction.nonce}:${transaction.variant}`;
}
