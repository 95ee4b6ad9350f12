import type { MintStateRecord } from '@playline/contracts';
import type { ChainHead, ChainNode, ChainRules, LaneClock, LaneSigner, SignerLane } from '../ports.ts';
import type { MintLedger } from './mint-ledger.ts';
import { type StateChange, toNextState } from './next-state.ts';

/** What every step of a lane works with. */
export interface LaneContext {
  readonly lane: SignerLane;
  readonly ledger: MintLedger;
  readonly node: ChainNode;
  readonly signer: LaneSigner;
  readonly rules: ChainRules;
  readonly clock: LaneClock;
}

/** The same at one look at the chain. */
export interface LaneTurn extends LaneContext {
  readonly head: ChainHead;
  /** The genesis of the chain that the node serves. */
  readonly genesisHash: Buffer;
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
