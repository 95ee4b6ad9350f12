import {
  type MintRequestRecord,
  type MintStateRecord,
  type MintStatus,
  toHexText,
  toUuidText,
} from '@playline/contracts';

/** An attempt to mint an asset. Only the log and `mint_metadata` contain the metadata. */
export interface MintState {
  readonly chain: string;
  /** In lower case, like signer and owner. */
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
  /** In epoch milliseconds. */
  readonly requestedAt: number;
  readonly traceId: string;
  /** 0 until the minter reports a state. */
  readonly revision: number;
  readonly status: MintStatus;
  readonly stage: string;
  readonly reason: string | null;
  readonly nonce: number | null;
  /** In lower case. */
  readonly transactionHash: string | null;
  /** A UUID. */
  readonly activityId: string | null;
  readonly error: string | null;
  /** In epoch milliseconds. */
  readonly changedAt: number;
}

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

/** The members that decide which of two states is current. */
export type CurrentState = Pick<MintState, 'attemptId' | 'signer' | 'status' | 'revision' | 'requestedAt'>;

/** A state that may come from an unconfirmed claim. */
export interface UnconfirmedState extends CurrentState {
  readonly isConfirmed: boolean;
}

/**
 * Whether a state from the log replaces the current state. Follows the minter's rules: a later request is valid only
 * after a failure, and the minter's state takes precedence over a request. Between signers, the later request wins.
 */
export function isNewer(update: CurrentState, current: UnconfirmedState | null): boolean {
  if (current === null) return true;
  if (update.attemptId === current.attemptId) return !current.isConfirmed || update.revision > current.revision;
  if (current.status === 'succeeded') return false;
  const isLater = update.requestedAt > current.requestedAt;
  if (update.revision === 0) return isLater && (!current.isConfirmed || current.status === 'failed');
  if (current.revision === 0) return isLater || update.status !== 'failed';
  return isLater || update.signer === current.signer;
}

/** @returns the current attempt, or null if there are no attempts */
export function findCurrentAttempt<S extends CurrentState & Pick<MintState, 'changedAt'>>(
  attempts: readonly S[],
): S | null {
  let current: S | null = null;
  for (const each of attempts.toSorted((a, b) => a.changedAt - b.changedAt || a.revision - b.revision))
    if (current === null || isNewer(each, { ...current, isConfirmed: true })) current = each;
  return current;
}

/** Converts a state to an element of `result`. */
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

/** Formats a time with six fractional digits, as in the chain API. */
const toTimeText = (epochMs: number): string => new Date(epochMs).toISOString().replace('Z', '000Z');
