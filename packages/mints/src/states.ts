import type { MintRequestRecord, MintStateRecord, MintStatus } from '@playline/contracts';

/** What became of an asset that was asked for, as it is stored and shown. One a reference id and attempt. */
export interface MintState {
  readonly chain: string;
  /** `0x` and 40 lower-case hexadecimal digits; so are the signer and the owner. */
  readonly contractAddress: string;
  readonly referenceId: string;
  /** 32 lower-case hexadecimal digits. */
  readonly attemptId: string;
  readonly signer: string;
  readonly projectId: string;
  readonly environmentId: string;
  readonly ownerAddress: string;
  readonly tokenId: string | null;
  readonly amount: string | null;
  /** JSON text of an object. */
  readonly metadata: string | null;
  /** Epoch milliseconds. */
  readonly requestedAt: number;
  readonly traceId: string;
  /** 0 while only the request is known; rises with each change. */
  readonly revision: number;
  readonly status: MintStatus;
  readonly stage: string;
  readonly reason: string | null;
  readonly nonce: number | null;
  /** `0x` and 64 lower-case hexadecimal digits. */
  readonly transactionHash: string | null;
  /** UUID. */
  readonly activityId: string | null;
  readonly error: string | null;
  /** Epoch milliseconds. */
  readonly changedAt: number;
}

const toHex = (bytes: Buffer) => `0x${bytes.toString('hex')}`;

/** A UUID of its 16 bytes, as texts have it. */
export const toUuidText = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** What is known of an asset when its request is on the log and nothing more. */
export function toRequestedState(request: MintRequestRecord): MintState {
  return {
    chain: request.chain,
    contractAddress: toHex(request.contractAddress),
    referenceId: request.referenceId,
    attemptId: request.attemptId.toString('hex'),
    signer: toHex(request.signer),
    projectId: request.projectId,
    environmentId: request.environmentId,
    ownerAddress: toHex(request.ownerAddress),
    tokenId: request.tokenId,
    amount: request.amount,
    metadata: request.metadata,
    requestedAt: request.requestedAt,
    traceId: request.traceId,
    ...{ revision: 0, status: 'pending', stage: 'accepted', reason: null, nonce: null },
    ...{ transactionHash: null, activityId: null, error: null, changedAt: request.requestedAt },
  };
}

/** What a record of `chain.mint-state.v1` says. */
export function toMintState(record: MintStateRecord): MintState {
  const { revision, status, stage, reason, nonce, error, changedAt } = record;
  const { transactionHash, activityId } = record;
  return {
    ...toRequestedState(record),
    ...{ revision, status, stage, reason, nonce, error, changedAt },
    transactionHash: transactionHash === null ? null : toHex(transactionHash),
    activityId: activityId === null ? null : toUuidText(activityId),
  };
}

/** What stands for a reference id. */
export type Standing = Pick<MintState, 'attemptId' | 'signer' | 'status' | 'revision' | 'requestedAt'>;

/** A standing that may be of a claim nobody has confirmed yet: whether its request is on the log is not known. */
export interface OpenStanding extends Standing {
  readonly isConfirmed: boolean;
}

/**
 * Whether something that the log says takes the place of what stands for a reference id. It follows what the minter does:
 * the first request of a reference id wins until it has failed, so a later one counts only behind a failure, and whatever
 * the minter has said of an attempt counts more than a request of which it has said nothing. What it says of the attempts of
 * one signer is in one order, that of the log; between two signers the time of the request decides.
 */
export function isTruer(said: Standing, standing: OpenStanding | null): boolean {
  if (standing === null) return true;
  if (said.attemptId === standing.attemptId) return !standing.isConfirmed || said.revision > standing.revision;
  if (standing.status === 'succeeded') return false;
  const isLater = said.requestedAt > standing.requestedAt;
  if (said.revision === 0) return isLater && (!standing.isConfirmed || standing.status === 'failed');
  if (standing.revision === 0) return isLater || said.status !== 'failed';
  return isLater || said.signer === standing.signer;
}

/** The attempt that is true of all that a reference id has had, each in one of its revisions at least. */
export function foldAttempts<S extends Standing & Pick<MintState, 'changedAt'>>(attempts: readonly S[]): S | null {
  let standing: S | null = null;
  for (const each of attempts.toSorted((a, b) => a.changedAt - b.changedAt || a.revision - b.revision))
    if (standing === null || isTruer(each, { ...standing, isConfirmed: true })) standing = each;
  return standing;
}

/** A request of the interface: one element of `result`. */
export function toMintRequestJson(state: MintState, chain: { readonly id: string; readonly name: string }) {
  return {
    chain: { id: chain.id, name: chain.name },
    collection_address: state.contractAddress,
    reference_id: state.referenceId,
    owner_address: state.ownerAddress,
    status: state.status,
    token_id: state.tokenId,
    amount: state.amount,
    activity_id: state.activityId,
    transaction_hash: state.transactionHash,
    error: state.error === null ? null : { message: state.error },
    created_at: toTimeText(state.requestedAt),
    updated_at: toTimeText(state.changedAt),
  };
}

/** Six fractional digits, as all times of the chain interface have. */
const toTimeText = (epochMs: number): string => new Date(epochMs).toISOString().replace('Z', '000Z');
