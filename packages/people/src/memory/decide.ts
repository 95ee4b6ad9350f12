import { ZERO_KEY } from '@playline/contracts';
import { type GraphLimits, SUSPECTS_MAX, type Suspect } from '../graph.ts';
import { type RefusalReason, RULING_REASONS, type StepDecision } from '../identities/decisions.ts';
import type { GraphFact, GraphStep } from '../identities/steps.ts';
import { type EnvironmentState, isFenced, type MemberState } from './model.ts';
import { areParted } from './unlink.ts';

interface Question {
  fact: GraphFact;
  step: GraphStep;
  limits: GraphLimits;
  generation: number;
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
  if (step.link === 'allow' || step.link === 'block') {
    suspect(state, question, { key: step.aKey, state: step.link === 'allow' ? 'allowed' : 'blocked' });
    return { outcome: 'unchanged', reason: RULING_REASONS[step.link], root: step.aKey, moved: [] };
  }
  if ([a, b].some((key) => state.suspects.get(key)?.state === 'blocked')) return refuse('blocked');
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
    : refusalOf(state, question, [sideA, sideB]);
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

export function suspect(
  state: EnvironmentState,
  { fact, generation }: Pick<Question, 'fact' | 'generation'>,
  { key, state: wanted }: Pick<Suspect, 'key' | 'state'>,
): void {
  const hex = key.toString('hex');
  const { environmentId, offset, receivedAt: since } = fact;
  if (wanted === 'held' && !state.suspects.has(hex) && state.suspects.size >= SUSPECTS_MAX) return;
  state.suspects.set(hex, { environmentId, key, state: wanted, since, generation, offset });
}

/** Whether the id that a step links with an anonymous id is held, or is held from now on because it gathers too many. */
function isHeld(state: EnvironmentState, question: Question, joined: readonly MemberState[]): boolean {
  const { fact, step, limits } = question;
  if (step.aKind !== 'anonymous' && step.bKind !== 'anonymous') return false;
  const key = step.bKind === 'anonymous' && step.aKind !== 'anonymous' ? step.aKey : step.bKey;
  const known = state.suspects.get(key.toString('hex'));
  if (known !== undefined) return known.state === 'held';
  const { anonymousIdsMax, windowMs } = limits.gathering ?? { anonymousIdsMax: Number.POSITIVE_INFINITY, windowMs: 0 };
  const since = fact.receivedAt - windowMs;
  if (joined.filter(({ kind, linkedAt }) => kind === 'anonymous' && linkedAt > since).length <= anonymousIdsMax)
    return false;
  suspect(state, question, { key, state: 'held' });
  return true;
}

function refusalOf(
  state: EnvironmentState,
  question: Question,
  [sideA, sideB]: readonly [Side, Side],
): RefusalReason | null {
  const { fact, step, limits } = question;
  const joined = [...sideA.values(), ...sideB.values()];
  if (joined.length > limits.identitiesMax) return 'too_many_identities';
  const kindsOfB = new Set([...sideB.values()].map((member) => member.kind));
  // The sides share no identity, so a shared kind means two values of it.
  const inCommon = [...sideA.values()].map((member) => member.kind).filter((kind) => kindsOfB.has(kind));
  if (step.link === 'alias' && inCommon.some((kind) => limits.uniqueTypes.includes(kind))) return 'two_known_users';
  if (step.link !== 'alias' && inCommon.some((kind) => kind !== 'anonymous')) return 'shared_device';
  if (isHeld(state, question, joined)) return 'suspect';
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
