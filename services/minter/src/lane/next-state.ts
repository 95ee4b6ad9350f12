import type { MintStateRecord } from '@playline/contracts';
import type { PlacedRequest } from '../ports.ts';

/** The members of a state that a change may set. */
export type StateChange = Partial<
  Pick<
    MintStateRecord,
    'status' | 'stage' | 'reason' | 'nonce' | 'transactionHash' | 'activityId' | 'error' | 'tokenId' | 'amount'
  >
>;

/** The first state of an accepted asset. @param changedAt epoch milliseconds */
export function toFirstState({ request, partition, offset }: PlacedRequest, changedAt: number): MintStateRecord {
  const { metadata: _, ...asset } = request;
  return {
    ...asset,
    revision: 1,
    status: 'pending',
    stage: 'accepted',
    reason: null,
    nonce: null,
    transactionHash: null,
    activityId: null,
    error: null,
    requestPartition: partition,
    requestOffset: offset,
    changedAt,
  };
}

/** The next state of an attempt; null when the change changes nothing. @param changedAt epoch milliseconds */
export function toNextState(state: MintStateRecord, change: StateChange, changedAt: number): MintStateRecord | null {
  const next = { ...state, ...change };
  const isSame = Object.entries(change).every(([name, value]) => {
    const before = state[name as keyof StateChange];
    return Buffer.isBuffer(value) && Buffer.isBuffer(before) ? value.equals(before) : value === before;
  });
  return isSame ? null : { ...next, revision: state.revision + 1, changedAt };
}
