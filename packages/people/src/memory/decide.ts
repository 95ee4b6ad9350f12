import { ZERO_KEY } from '@playline/contracts';
import type { GraphLimits } from '../graph.ts';
import type { RefusalReason, StepDecision } from '../identities/decisions.ts';
import type { GraphFact, GraphStep } from '../identities/steps.ts';
import { type EnvironmentState, isFenced, type MemberState } from './model.ts';
import { areParted } from './unlink.ts';

interface Question {
  fact: GraphFact;
  step: GraphStep;
  limits: GraphLimits;
}

type Side = Map<string, MemberState>;
type Verdict = Pick<StepDecision, 'outcome' | 'reason' | 'root' | 'moved'>;

/** Decides one step and, when it links, joins the two components. */
export function decideStep(state: EnvironmentState, question: Question): StepDecision {
  const { link, aKey, aKind, bKey, bKind } = question.step;
  return { link, aKey, aKind, bKey, bKind, ...judge(state, question), stayed: null };
}

function judge(state: EnvironmentState, question: Question): Verdict {
  const { fact, step } = question;
  const [a, b] = [step.aKey.toString('hex'), step.bKey.toString('hex')];
  if (step.blocked) return refuse('blocked');
  if (isFenced(state, a, fact) || isFenced(state, b, fact)) return refuse('fenced');
  rejoin(state, a, { kind: step.aKind, linkedAt: fact.receivedAt });
  rejoin(state, b, { kind: step.bKind, linkedAt: fact.receivedAt });
  const [rootA, rootB] = [state.roots.get(a), state.roots.get(b)];
  if (a === b || (rootA !== undefined && rootA === rootB))
    return { outcome: 'unchanged', reason: '', root: Buffer.from(rootA ?? a, 'hex'), moved: [] };
  if (rootB !== undefined && step.otherKeys.some((key) => state.roots.get(key.toString('hex')) === rootB))
    return { outcome: 'ambiguous', reason: '', root: ZERO_KEY, moved: [] };

  const sideA = state.members.get(rootA ?? '') ?? new Map([[a, { kind: step.aKind, linkedAt: fact.receivedAt }]]);
  const sideB = state.members.get(rootB ?? '') ?? new Map([[b, { kind: step.bKind, linkedAt: fact.receivedAt }]]);
  const reason = areParted(state, question.fact, { a: sideA, b: sideB })
    ? 'unlinked'
    : refusalOf(sideA, sideB, question);
  if (reason !== null) return refuse(reason);
  return join(state, { root: rootA ?? a, side: sideA }, { root: rootB ?? b, side: sideB });
}

/**
 * A rebuild leaves out an erased identity, although it may be the root of others. When it is linked again, it joins
 * them, because their person key is its own key.
 */
export function rejoin(state: EnvironmentState, key: string, member: MemberState): void {
  const left = state.fences.has(key) && !state.roots.has(key) ? state.members.get(key) : undefined;
  if (left === undefined) return;
  left.set(key, member);
  state.roots.set(key, key);
}

function refuse(reason: RefusalReason): Verdict {
  return { outcome: 'refused', reason, root: ZERO_KEY, moved: [] };
}

function refusalOf(sideA: Side, sideB: Side, { fact, step, limits }: Question): RefusalReason | null {
  const joined = [...sideA.values(), ...sideB.values()];
  if (joined.length > limits.identitiesMax) return 'too_many_identities';
  const kindsOfB = new Set([...sideB.values()].map((member) => member.kind));
  // The sides share no identity, so a shared kind means two values of it.
  const inCommon = [...sideA.values()].map((member) => member.kind).filter((kind) => kindsOfB.has(kind));
  if (step.link === 'alias' && inCommon.some((kind) => limits.uniqueTypes.includes(kind))) return 'two_known_users';
  if (step.link !== 'alias' && inCommon.some((kind) => kind !== 'anonymous')) return 'shared_device';
  const since = fact.receivedAt - limits.anonymousWindowMs;
  const anonymousIds = joined.filter((member) => member.kind === 'anonymous' && member.linkedAt > since);
  return anonymousIds.length > limits.anonymousIdsMax ? 'too_many_anonymous_ids' : null;
}

interface Rooted {
  root: string;
  side: Side;
}

/** The larger side keeps its person key; of two equally large ones the smaller key stays. */
function join(state: EnvironmentState, a: Rooted, b: Rooted): Verdict {
  const isBKept = b.side.size > a.side.size || (b.side.size === a.side.size && b.root < a.root);
  const { root } = isBKept ? b : a;
  const joined = new Map([...a.side, ...b.side].sort(([one], [other]) => (one < other ? -1 : 1)));
  const moved = [...joined].filter(([key]) => state.roots.get(key) !== root);
  for (const key of joined.keys()) {
    state.members.delete(state.roots.get(key) ?? '');
    state.roots.set(key, root);
  }
  state.members.set(root, joined);
  return {
    outcome: 'linked',
    reason: '',
    root: Buffer.from(root, 'hex'),
    moved: moved.map(([key, member]) => ({ key: Buffer.from(key, 'hex'), ...member })),
  };
}
