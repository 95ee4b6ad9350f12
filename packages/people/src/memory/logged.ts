import type { MovedIdentity, StepDecision } from '../identities/decisions.ts';
import type { GraphFact } from '../identities/steps.ts';
import { toSuspects } from '../rebuild.ts';
import { rejoin, suspect } from './decide.ts';
import { type EnvironmentState, isFenced, removeMember } from './model.ts';
import { noteSide } from './unlink.ts';

interface Logged {
  readonly fact: GraphFact;
  readonly generation: number;
  readonly decision: StepDecision;
}

/** Applies a decision of the log as it is. Only fences are checked, because an erasure may have come since. */
export function applyLogged(state: EnvironmentState, logged: Logged): void {
  const { link, root, moved, stayed } = logged.decision;
  if (link === 'unlink') applySides(state, logged);
  else if (link !== 'allow' && link !== 'block') rejoinBoth(state, logged);
  noteSuspects(state, logged);
  if (stayed !== null) put(state, stayed.members, stayed.root);
  put(state, moved, root);
}

function applySides(state: EnvironmentState, { fact, generation, decision }: Logged): void {
  const { aKey, outcome, moved, stayed } = decision;
  const placed = { ...fact, generation };
  for (const { key } of moved) noteSide(state, placed, { key, side: 'split' });
  for (const { key } of stayed?.members ?? []) noteSide(state, placed, { key, side: 'stayed' });
  if (outcome !== 'unlinked') noteSide(state, placed, { key: aKey, side: 'none' });
}

function rejoinBoth(state: EnvironmentState, { fact, decision }: Logged): void {
  const { aKey, aKind, bKey, bKind, reason } = decision;
  if (reason === 'blocked' || reason === 'fenced') return;
  for (const [key, kind] of [[aKey, aKind] as const, [bKey, bKind] as const]) {
    const hex = key.toString('hex');
    if (!isFenced(state, hex, fact)) rejoin(state, hex, { kind, linkedAt: fact.receivedAt });
  }
}

function noteSuspects(state: EnvironmentState, { fact, generation, decision }: Logged): void {
  for (const found of toSuspects({ ...fact, ...decision, generation }))
    if (found.state !== 'held' || !isFenced(state, found.key.toString('hex'), fact))
      suspect(state, { fact, generation }, found);
}

function put(state: EnvironmentState, members: readonly MovedIdentity[], root: Buffer): void {
  const rootHex = root.toString('hex');
  for (const { key, kind, linkedAt } of members) {
    const hex = key.toString('hex');
    if (state.roots.get(hex) === rootHex || linkedAt <= (state.fences.get(hex) ?? -1)) continue;
    removeMember(state, hex);
    state.members.set(rootHex, (state.members.get(rootHex) ?? new Map()).set(hex, { kind, linkedAt }));
    state.roots.set(hex, rootHex);
  }
}
