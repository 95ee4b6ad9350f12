import { NodeFault } from '@playline/chain';
import type { MintStateRecord } from '@playline/contracts';
import { NodeRefusal } from '../chain/json-rpc.ts';
import type { ChainHead, ChainNode, ChainRules, LaneClock, LaneSigner, SignerLane } from '../ports.ts';
import { LaneOver } from './lane-over.ts';
import type { MintLedger } from './mint-ledger.ts';
import { type StateChange, toNextState } from './next-state.ts';

/** What every step of a lane works with. */
export interface LaneContext {
  readonly lane: SignerLane;
  readonly ledger: MintLedger;
  readonly signer: LaneSigner;
  readonly rules: ChainRules;
  readonly clock: LaneClock;
}

/** The same at one look at the chain, by one node. */
export interface LaneTurn extends LaneContext {
  readonly node: ChainNode;
  readonly head: ChainHead;
  /** The genesis of the chain that the node serves. */
  readonly genesisHash: Buffer;
  /** Of single collections and nonces: they have stopped nothing else. */
  readonly faults: unknown[];
}

/** States that a change makes of others, without those that it leaves as they are. */
export function changeAll(
  { clock }: Pick<LaneContext, 'clock'>,
  states: readonly MintStateRecord[],
  change: StateChange,
): MintStateRecord[] {
  const changedAt = clock.wallClockMs();
  return states.flatMap((state) => toNextState(state, change, changedAt) ?? []);
}

/** For people. Faults and refusals of nodes have words of ours; anything else may hold anything. */
export function toFaultWords(fault: unknown): string {
  const isOfNode = fault instanceof NodeFault || fault instanceof NodeRefusal;
  return isOfNode ? fault.message : 'the minter has stumbled over it, as its log says';
}

/** Faults that are of the node as a whole, whatever it was asked. */
const WHOLE = new Set(['busy', 'inconsistent', 'other-chain']);

/**
 * Does something for one collection or one nonce: what goes wrong there stops no other, as long as the node answers
 * something simple. @returns null when it went wrong, after `onFault` was told why in words
 * @throws LaneOver, and NodeFault when it is the node's
 */
export async function isolate<T>(
  turn: LaneTurn,
  act: () => Promise<T>,
  onFault: (words: string) => Promise<void> | void,
): Promise<T | null> {
  try {
    return await act();
  } catch (fault) {
    if (fault instanceof LaneOver || (fault instanceof NodeFault && WHOLE.has(fault.kind))) throw fault;
    await turn.node.chainId();
    turn.faults.push(fault);
    await onFault(toFaultWords(fault));
    return null;
  }
}
