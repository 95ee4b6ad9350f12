import {
  type MintRequestRecord,
  type MintStateRecord,
  type MintStatus,
  toHexText,
  toUuidText,
} from '@playline/contracts';

/**
 * State of a requested asset, as it is stored and shown. One per reference id and attempt. Its metadata is only on the
 * log of requests and in the table `mint_metadata`.
 */
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
  /** Epoch milliseconds. */
  readonly requestedAt: number;
  readonly traceId: string;
  /** 0 while only the request is known; grows with each change. */
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

/** State of an asset of which only the request is known. */
export function toRequestedState(request: Omit<MintRequestRecord, 'metadata'>): MintState {
  return {
    chain: request.chain,
    contractAddress: toHexText(request.contractAddress),
    referenceId: request.referenceId,
    attemptId: request.attemptId.toString('hex'),
    signer: toHexText(request.signer),
    projectId: request.projectId,
    environmentId: request.environmentId,
    ownerAddress: toHexText(request.ownerAddress),
    tokenId: request.tokenId,
    amount: request.amount,
    requestedAt: request.requestedAt,
    traceId: request.traceId,
    revision: 0,
    status: 'pending',
    stage: 'accepted',
    reason: null,
    nonce: null,
    transactionHash: null,
    activityId: null,
    error: null,
    changedAt: request.requestedAt,
  };
}

/** State from a record of `chain.mint-state.v1`. */
export function toMintState(record: MintStateRecord): MintState {
  const { revision, status, stage, reason, nonce, error, changedAt } = record;
  const { transactionHash, activityId } = record;
  return {
    ...toRequestedState(record),
    revision,
    status,
    stage,
    reason,
    nonce,
    error,
    changedAt,
    transactionHash: transactionHash === null ? null : toHexText(transactionHash),
    activityId: activityId === null ? null : toUuidText(activityId),
  };
}

/** The fields that decide which of two states counts. */
export type CurrentState = Pick<MintState, 'attemptId' | 'signer' | 'status' | 'revision' | 'requestedAt'>;

/** A state that may come from an unconfirmed claim, whose request may or may not be on the log. */
export interface UnconfirmedState extends CurrentState {
  readonly isConfirmed: boolean;
}

/**
 * Whether a state from the log replaces the current state of a reference id. Follows the minter: the first request of a
 * reference id wins until it has failed, so a later one counts only after a failure. Any state of the minter counts
 * more than a request without one. States of one signer are ordered by the log; between two signers the time of the
 * request decides.
 */
export function isTruer(said: CurrentState, standing: UnconfirmedState | null): boolean {
  if (standing === null) return true;
  if (said.attemptId === standing.attemptId) return !standing.isConfirmed || said.revision > standing.revision;
  if (standing.status === 'succeeded') return false;
  const isLater = said.requestedAt > standing.requestedAt;
  if (said.revision === 0) return isLater && (!standing.isConfirmed || standing.status === 'failed');
  if (standing.revision === 0) return isLater || said.status !== 'failed';
  return isLater || said.signer === standing.signer;
}

/** The attempt that counts among all attempts of a reference id. Each must be given in at least one revision. */
export function foldAttempts<S extends CurrentState & Pick<MintState, 'changedAt'>>(attempts: readonly S[]): S | null {
  let standing: S | null = null;
  for (const each of attempts.toSorted((a, b) => a.changedAt - b.changedAt || a.revision - b.revision))
    if (standing === null || isTruer(each, { ...standing, isConfirmed: true })) standing = each;
  return standing;
}

/** A request in the form of the interface: one element of `result`. */
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

/** Six fractional digits, as in all times of the chain interface. */
const toTimeText = (epochMs: number): string => new Date(epochMs).toISOString().replace('Z', '000Z');
