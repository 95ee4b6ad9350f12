import { NodeFault } from '@playline/chain';
import type { MintStateRecord } from '@playline/contracts';
import { isTakenOver } from '@playline/stream';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainHead, ChainNode, ChainRules, LaneClock, LaneSigner, ReceivedRequest, SignerLane } from '../ports.ts';
import type { MintLedger } from './mint-ledger.ts';

/** What every step of a lane works with. */
export interface LaneContext {
  readonly lane: SignerLane;
  readonly ledger: MintLedger;
  readonly signer: LaneSigner;
  readonly rules: ChainRules;
  readonly clock: LaneClock;
}

/** The same, with one node and the chain as it was at the start of a turn. */
export interface LaneTurn extends LaneContext {
  readonly node: ChainNode;
  readonly head: ChainHead;
  /** The genesis hash of the node's chain. */
  readonly genesisHash: Buffer;
  /** Faults of single collections and nonces, which stopped nothing else. */
  readonly faults: unknown[];
}

/** Applies a change to states and returns those that it really changes. */
export function changeAll(
  { clock }: Pick<LaneContext, 'clock'>,
  states: readonly MintStateRecord[],
  change: StateChange,
): MintStateRecord[] {
  const changedAt = clock.wallClockMs();
  return states.flatMap((state) => toNextState(state, change, changedAt) ?? []);
}

/** For people. Faults and refusals of nodes have words of ours; anything else may hold anything. */
export function toFaultMessage(fault: unknown): string {
  const isOfNode = fault instanceof NodeFault || fault instanceof NodeRefusal;
  return isOfNode ? fault.message : 'the minter has stumbled over it, as its log says';
}

/** Faults of the node as a whole, whatever the request was. */
const WHOLE = new Set(['busy', 'inconsistent', 'other-chain']);

/**
 * Runs the work for one collection or one nonce. If it fails, the others go on, as long as the node still answers a
 * simple request. @returns null on failure, after `onFault` got the reason
 * @throws LaneOver; NodeFault when the node itself is at fault
 */
export async function isolate<T>(
  turn: LaneTurn,
  act: () => Promise<T>,
  onFault: (words: string) => Promise<void> | void,
): Promise<T | null> {
  try {
    return await act();
  } catch (fault) {
    if (fault instanceof LaneLost || (fault instanceof NodeFault && WHOLE.has(fault.kind))) throw fault;
    await turn.node.chainId();
    turn.faults.push(fault);
    await onFault(toFaultMessage(fault));
    return null;
  }
}

/** The writer of a lane cannot be used any more: it was fenced, or does not know what was written. Open a new one. */
export class LaneLost extends Error {
  override readonly name = 'LaneOver';

  /** Whether another writer of the signer is at work: a minter, or an operator's command. */
  get isTakenOver(): boolean {
    return this.cause === undefined || isTakenOver(this.cause);
  }
}

/** The members of a state that a change may set. */
export type StateChange = Partial<
  Pick<
    MintStateRecord,
    'status' | 'stage' | 'reason' | 'nonce' | 'transactionHash' | 'activityId' | 'error' | 'tokenId' | 'amount'
  >
>;

/** The first state of an accepted asset. @param changedAt epoch milliseconds */
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

/** The next state of an attempt; null when the change changes nothing. @param changedAt epoch milliseconds */
export function toNextState(state: MintStateRecord, change: StateChange, changedAt: number): MintStateRecord | null {
  const next = { ...state, ...change };
  const isSame = Object.entries(change).every(([name, value]) => {
    const before = state[name as keyof StateChange];
    return Buffer.isBuffer(value) && Buffer.isBuffer(before) ? value.equals(before) : value === before;
  });
  return isSame ? null : { ...next, revision: state.revision + 1, changedAt };
}
