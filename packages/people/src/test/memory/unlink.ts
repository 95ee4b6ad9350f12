import { ZERO_KEY } from '@playline/contracts';
import type { UnlinkSide } from '../../graph.ts';
import type { RefusalReason, SplitSide, StepDecision } from '../../identities/decisions.ts';
import type { GraphFact, NamedIdentity } from '../../identities/steps.ts';
import { compareOrder, type EnvironmentState, isFenced, type MemberState } from './model.ts';

type Side = ReadonlyMap<string, MemberState>;

/** A fact and the generation of its topic. */
type GenerationFact = GraphFact & { generation: number };
export type UnlinkFact = GenerationFact & { unlink: readonly NamedIdentity[] };

export function addUnlinkSide(state: EnvironmentState, side: UnlinkSide): void {
  const hex = side.key.toString('hex');
  const known = state.unlinkSides.get(hex) ?? [];
  if (known.some((each) => compareOrder(each, side) === 0)) return;
  state.unlinkSides.set(hex, [...known, side]);
}

/** Whether an unlink not earlier than the fact separated a member of `a` from a member of `b`. */
export function areSeparated(state: EnvironmentState, fact: GraphFact, { a, b }: { a: Side; b: Side }): boolean {
  const timeMs = Math.min(fact.receivedAt, fact.eventTime);
  const sidesOf = (members: Side) =>
    [...members.keys()]
      .flatMap((key) => state.unlinkSides.get(key) ?? [])
      .filter(({ unlinkedAt }) => timeMs <= unlinkedAt);
  const ofB = sidesOf(b);
  return sidesOf(a).some((sideA) => ofB.some((sideB) => compareOrder(sideA, sideB) === 0 && sideA.side !== sideB.side));
}

/** Decides an unlink and splits the component if the unlink is valid. */
export function decideUnlink(state: EnvironmentState, fact: UnlinkFact): StepDecision {
  const decision = refusalOf(state, fact);
  if (decision === null) return split(state, fact);
  // Stored so that a copy of the unlink in the log does not undo newer links.
  saveSide(state, fact, { key: fact.unlink[0]!.key, side: 'none' });
  return decision;
}

function refusalOf(state: EnvironmentState, fact: UnlinkFact): StepDecision | null {
  const [first] = fact.unlink as [NamedIdentity];
  const rootOf = ({ key }: NamedIdentity) => state.roots.get(key.toString('hex'));
  const root = rootOf(first);
  const unchanged = {
    ...stepOf(first, first),
    outcome: 'unchanged' as const,
    root: root === undefined ? first.key : Buffer.from(root, 'hex'),
  };
  if (fact.unlink.some(({ key }) => isFenced(state, key.toString('hex'), fact))) return refuse(first, 'fenced', first);
  if (isCopy(state, fact)) return unchanged;
  const isFirst = ({ key }: NamedIdentity) => key.equals(first.key);
  const stranger = fact.unlink.find((one) => rootOf(one) !== root || (root === undefined && !isFirst(one)));
  if (stranger !== undefined) return refuse(first, 'not_one_person', stranger);
  const named = new Set(fact.unlink.map(({ key }) => key.toString('hex')));
  const isWholePerson = root === undefined || state.members.get(root)!.size === named.size;
  return isWholePerson ? unchanged : null;
}

const stepOf = (a: NamedIdentity, b: NamedIdentity) => ({
  link: 'unlink' as const,
  aKey: a.key,
  aKind: a.kind,
  bKey: b.key,
  bKind: b.kind,
  reason: '' as const,
  moved: [],
  stayed: null,
});

function refuse(a: NamedIdentity, reason: RefusalReason, b: NamedIdentity): StepDecision {
  return { ...stepOf(a, b), outcome: 'refused', reason, root: ZERO_KEY };
}

/** A parked unlink may be in the log twice. The copy has the same timestamp and must not undo newer links. */
function isCopy(state: EnvironmentState, { unlink, receivedAt }: UnlinkFact): boolean {
  const sides = state.unlinkSides.get(unlink[0]!.key.toString('hex')) ?? [];
  return sides.some((one) => one.side !== 'stayed' && one.unlinkedAt === receivedAt);
}

/** Stores a side, except for erased identities, whose fences already refuse the affected facts. */
export function saveSide(state: EnvironmentState, fact: GenerationFact, side: Pick<UnlinkSide, 'key' | 'side'>): void {
  const { environmentId, generation, offset, receivedAt: unlinkedAt } = fact;
  if (isFenced(state, side.key.toString('hex'), fact)) return;
  addUnlinkSide(state, { environmentId, ...side, generation, offset, unlinkedAt });
}

/** The side that contains the root keeps it. If the root was erased, the remaining side keeps it. */
function split(state: EnvironmentState, fact: UnlinkFact): StepDecision {
  const named = new Set(fact.unlink.map(({ key }) => key.toString('hex')));
  const root = state.roots.get(fact.unlink[0]!.key.toString('hex'))!;
  const members = [...state.members.get(root)!].sort(([keyA], [keyB]) => (keyA < keyB ? -1 : 1));
  const settle = (side: 'split' | 'stayed'): SplitSide => {
    const sideMembers = members.filter(([key]) => named.has(key) === (side === 'split'));
    const keepsRoot = named.has(root) === (side === 'split');
    const sideRoot = keepsRoot ? root : sideMembers[0]![0];
    state.members.set(sideRoot, new Map(sideMembers));
    for (const [key] of sideMembers) {
      state.roots.set(key, sideRoot);
      saveSide(state, fact, { key: Buffer.from(key, 'hex'), side });
    }
    return {
      root: Buffer.from(sideRoot, 'hex'),
      members: sideMembers.map(([key, member]) => ({ key: Buffer.from(key, 'hex'), ...member })),
    };
  };
  const [leaving, stayed] = [settle('split'), settle('stayed')];
  const step = stepOf(fact.unlink[0]!, stayed.members[0]!);
  return { ...step, outcome: 'unlinked', root: leaving.root, moved: leaving.members, stayed };
}
