import { NodeFault } from '@playline/chain';
import type { MintStateRecord } from '@playline/contracts';
import { isTakenOver } from '@playline/stream';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainHead, ChainNode, ChainRules, LaneClock, LaneSigner, ReceivedRequest, SignerLane } from '../ports.ts';
import type { MintLedger } from './mint-ledger.ts';

export interface LaneContext {
  readonly lane: SignerLane;
  readonly ledger: MintLedger;
  readonly signer: LaneSigner;
  readonly rules: ChainRules;
  readonly clock: LaneClock;
}

/** One turn of a lane. Uses a single node and the chain head at the start of the turn. */
export interface LaneTurn extends LaneContext {
  readonly node: ChainNode;
  readonly head: ChainHead;
  readonly genesisHash: Buffer;
  /** Faults that affect only one collection or nonce. */
  readonly faults: unknown[];
}

/** @returns only the states that the change affects */
export function changeAll(
  { clock }: Pick<LaneContext, 'clock'>,
  states: readonly MintStateRecord[],
  change: StateChange,
): MintStateRecord[] {
  const changedAt = clock.wallClockMs();
  return states.flatMap((state) => toNextState(state, change, changedAt) ?? []);
}

/** Only the messages of node faults are safe to show. */
export function toFaultMessage(fault: unknown): string {
  const isNodeFault = fault instanceof NodeFault || fault instanceof NodeRefusal;
  return isNodeFault ? fault.message : 'an internal error; see the minter log';
}

/** Faults that affect all requests to the node. */
const NODE_WIDE_KINDS = new Set(['busy', 'inconsistent', 'other-chain']);

/**
 * Runs an action for one collection or nonce. If it fails but the node works, the turn continues. @returns null on
 * failure @throws LaneLost, or NodeFault if the node itself fails
 */
export async function isolate<T>(
  turn: LaneTurn,
  action: () => Promise<T>,
  onFault: (message: string) => Promise<void> | void,
): Promise<T | null> {
  try {
    return await action();
  } catch (fault) {
    if (fault instanceof LaneLost || (fault instanceof NodeFault && NODE_WIDE_KINDS.has(fault.kind))) throw fault;
    await turn.node.chainId();
    turn.faults.push(fault);
    await onFault(toFaultMessage(fault));
    return null;
  }
}

/** The writer was fenced, or the outcome of a write is unknown. A new writer must be opened. */
export class LaneLost extends Error {
  override readonly name = 'LaneLost';

  get isTakenOver(): boolean {
    return this.cause === undefined || isTakenOver(this.cause);
  }
}

export type StateChange = Partial<
  Pick<
    MintStateRecord,
    'status' | 'stage' | 'reason' | 'nonce' | 'transactionHash' | 'activityId' | 'error' | 'tokenId' | 'amount'
  >
>;

export function toFirstState({ request, partition, offset }: ReceivedRequest, changedAt: number): MintStateRecord {
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

/** Returns null if nothing changes. @param changedAt in epoch milliseconds */
export function toNextState(state: MintStateRecord, change: StateChange, changedAt: number): MintStateRecord | null {
  const next = { ...state, ...change };
  const isSame = Object.entries(change).every(([name, value]) => {
    const before = state[name as keyof StateChange];
    return Buffer.isBuffer(value) && Buffer.isBuffer(before) ? value.equals(before) : value === before;
  });
  return isSame ? null : { ...next, revision: state.revision + 1, changedAt };
}
