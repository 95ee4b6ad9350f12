import { ZERO_KEY } from '@playline/contracts';
import {
  type Applied,
  type FactBlock,
  GraphBehindFault,
  type GraphLimits,
  type IdentityGraph,
  SUSPECTS_MAX,
  type Suspect,
} from '../../graph.ts';
import {
  type LoggedFact,
  type MovedIdentity,
  type RefusalReason,
  RULING_REASONS,
  type StepDecision,
} from '../../identities/decisions.ts';
import { type GraphFact, type GraphStep, namedBy } from '../../identities/steps.ts';
import { MissingEpochFault, MissingHoldFault } from '../../people.ts';
import { toSuspects } from '../../rebuild.ts';
import {
  appliedOf,
  assertComplete,
  compareOrder,
  cutoffsOfHolds,
  dropSuspect,
  type EnvironmentState,
  environmentOf,
  type FactOrder,
  heldFromOf,
  isFenced,
  type MemberState,
  type Model,
  nameOf,
  removeMember,
} from './model.ts';
import { areSeparated, decideUnlink, saveSide } from './unlink.ts';

export function createGraph(model: Model): IdentityGraph {
  return {
    ...createFactCalls(model),
    ...createGraphQueries(model),
    async forget({ environmentId, erasureId }, keys) {
      if (model.epoch === null) throw new MissingEpochFault();
      const state = environmentOf(model, environmentId);
      if (!state.holds.has(erasureId.toString('hex'))) throw new MissingHoldFault();
      for (const key of keys) state.unlinkSides.delete(key.toString('hex'));
      for (const key of keys) dropSuspect(state, key.toString('hex'), Number.POSITIVE_INFINITY);
      return keys.filter((key) => removeMember(state, key.toString('hex')) !== undefined).length;
    },
  };
}

function createFactCalls(model: Model): Pick<IdentityGraph, 'apply' | 'lastApplied' | 'note' | 'readNote' | 'trim'> {
  const assertEpoch = () => {
    if (model.epoch === null) throw new MissingEpochFault();
  };
  return {
    async apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void) {
      assertComplete(model);
      const applied = appliedOf(model, block);
      if (applied < block.after) throw new GraphBehindFault(applied);
      const results = block.facts.map((fact): Applied => {
        const { outbox } = environmentOf(model, fact.environmentId);
        const field = `${nameOf(block)}/${fact.offset}`;
        if (fact.offset <= applied) return toRecorded(model, fact, outbox.get(field));
        const result = applyFact(model, fact, block.generation);
        outbox.set(field, result);
        return result;
      });
      model.progress.set(nameOf(block), Math.max(applied, block.through));
      onPart?.(results);
      return results;
    },
    async lastApplied(source) {
      assertEpoch();
      return appliedOf(model, source);
    },
    async note(source, note) {
      model.notes.set(nameOf(source), note);
    },
    readNote: async (source) => model.notes.get(nameOf(source)) ?? null,
    async trim(source, through, environmentIds) {
      for (const id of environmentIds)
        for (const field of environmentOf(model, id).outbox.keys()) {
          const [generation, partition, offset] = field.split('/').map(Number);
          if (generation === source.generation && partition === source.partition && offset! <= through)
            environmentOf(model, id).outbox.delete(field);
        }
    },
  };
}

/**
 * Facts decided before a rebuild are part of the rebuilt graph. Undecided facts before the last decided fact were
 * parked.
 */
function stateOf({ decided, lastDecided }: EnvironmentState, fact: FactOrder): 'new' | 'decided' | 'parked' {
  if (lastDecided === null || compareOrder(fact, lastDecided) > 0) return 'new';
  return decided.has(`${fact.generation}/${fact.offset}`) ? 'decided' : 'parked';
}

function applyFact(model: Model, fact: LoggedFact, generation: number): Applied {
  const state = environmentOf(model, fact.environmentId);
  if (fact.steps.length === 0 && fact.unlink === undefined) return { kind: 'done' };
  const status = stateOf(state, { generation, offset: fact.offset });
  if (status === 'decided') return { kind: 'done' };
  const logged = fact.logged === 'parked' ? [] : (fact.logged ?? []);
  for (const decision of logged) applyLogged(state, { fact, generation, decision });
  if (logged.length > 0 && logged.length >= fact.steps.length) return { kind: 'decided', decisions: logged };
  const isParked = status === 'parked' || fact.logged === 'parked';
  const person = parkedBy(state, fact) ?? (isParked ? personOf(state, namedBy(fact)[0]!) : null);
  if (person !== null) return { kind: 'parked', person };
  if (fact.unlink !== undefined)
    return { kind: 'decided', decisions: [decideUnlink(state, { ...fact, unlink: fact.unlink, generation })] };
  const { limits } = model;
  const steps = fact.steps.slice(logged.length);
  const decided = steps.map((step) => decideStep(state, { fact, step, limits, generation }));
  return { kind: 'decided', decisions: [...logged, ...decided] };
}

function createGraphQueries(model: Model): Pick<IdentityGraph, 'rootOf' | 'rootsOf' | 'membersOf' | 'suspects'> {
  const rootOf = async (environmentId: string, key: Buffer) => {
    const root = environmentOf(model, environmentId).roots.get(key.toString('hex'));
    return root === undefined ? null : Buffer.from(root, 'hex');
  };
  return {
    async suspects(environmentId) {
      if (model.epoch === null) throw new MissingEpochFault();
      const suspects = [...environmentOf(model, environmentId).suspects.values()];
      return suspects
        .map(({ key, state, since }) => ({ environmentId, key, state, since }))
        .sort((a, b) => Buffer.compare(a.key, b.key));
    },
    rootOf,
    rootsOf: (environmentId, keys) => Promise.all(keys.map((key) => rootOf(environmentId, key))),
    async membersOf(environmentId, key) {
      const { roots, members } = environmentOf(model, environmentId);
      const component = members.get(roots.get(key.toString('hex')) ?? '') ?? new Map();
      return [...component].sort().map(([hex, member]) => ({ key: Buffer.from(hex, 'hex'), ...member }));
    },
  };
}

/** Returns a recorded result. The person of a parked fact is recomputed because holds change. */
function toRecorded(model: Model, fact: GraphFact, recorded: Applied | undefined): Applied {
  if (recorded?.kind !== 'parked') return recorded ?? { kind: 'done' };
  const state = environmentOf(model, fact.environmentId);
  return { kind: 'parked', person: parkedBy(state, fact) ?? personOf(state, namedBy(fact)[0]!) };
}

function personOf(state: EnvironmentState, key: Buffer): Buffer {
  const hex = key.toString('hex');
  return Buffer.from(state.roots.get(hex) ?? hex, 'hex');
}

/** Key of the first person whose hold delays the fact, or null. */
function parkedBy(state: EnvironmentState, fact: GraphFact): Buffer | null {
  const cutoffs = cutoffsOfHolds(state);
  const isHeld = (key: Buffer) => fact.receivedAt > (heldFromOf(state, key, cutoffs) ?? Number.POSITIVE_INFINITY);
  const held = namedBy(fact).find(isHeld);
  return held === undefined ? null : personOf(state, held);
}

interface LoggedStep {
  readonly fact: GraphFact;
  readonly generation: number;
  readonly decision: StepDecision;
}

/** Applies a logged decision. Only fences are rechecked because the person may have been erased in the meantime. */
function applyLogged(state: EnvironmentState, logged: LoggedStep): void {
  const { link, root, moved, stayed } = logged.decision;
  if (link === 'unlink') applySides(state, logged);
  else if (link !== 'allow' && link !== 'block') rejoinBoth(state, logged);
  recordSuspects(state, logged);
  if (stayed !== null) moveToRoot(state, stayed.members, stayed.root);
  moveToRoot(state, moved, root);
}

function applySides(state: EnvironmentState, { fact, generation, decision }: LoggedStep): void {
  const { aKey, outcome, moved, stayed } = decision;
  const logged = { ...fact, generation };
  for (const { key } of moved) saveSide(state, logged, { key, side: 'split' });
  for (const { key } of stayed?.members ?? []) saveSide(state, logged, { key, side: 'stayed' });
  if (outcome !== 'unlinked') saveSide(state, logged, { key: aKey, side: 'none' });
}

function rejoinBoth(state: EnvironmentState, { fact, decision }: LoggedStep): void {
  const { aKey, aKind, bKey, bKind, reason } = decision;
  if (reason === 'blocked' || reason === 'fenced') return;
  for (const [key, kind] of [[aKey, aKind] as const, [bKey, bKind] as const]) {
    const hex = key.toString('hex');
    if (!isFenced(state, hex, fact)) rejoin(state, hex, { kind, linkedAt: fact.receivedAt });
  }
}

function recordSuspects(state: EnvironmentState, { fact, generation, decision }: LoggedStep): void {
  for (const found of toSuspects({ ...fact, ...decision, generation }))
    if (found.state !== 'held' || !isFenced(state, found.key.toString('hex'), fact))
      markSuspect(state, { fact, generation }, found);
}

function moveToRoot(state: EnvironmentState, members: readonly MovedIdentity[], root: Buffer): void {
  const rootHex = root.toString('hex');
  for (const { key, kind, linkedAt } of members) {
    const hex = key.toString('hex');
    if (state.roots.get(hex) === rootHex || linkedAt <= (state.fences.get(hex) ?? -1)) continue;
    removeMember(state, hex);
    state.members.set(rootHex, (state.members.get(rootHex) ?? new Map()).set(hex, { kind, linkedAt }));
    state.roots.set(hex, rootHex);
  }
}

interface DecisionInput {
  fact: GraphFact;
  step: GraphStep;
  limits: GraphLimits;
  generation: number;
}

type Side = Map<string, MemberState>;
type Verdict = Pick<StepDecision, 'outcome' | 'reason' | 'root' | 'moved'>;

/** Decides a step and joins the components if the outcome is `linked`. */
function decideStep(state: EnvironmentState, input: DecisionInput): StepDecision {
  const { link, aKey, aKind, bKey, bKind } = input.step;
  return { link, aKey, aKind, bKey, bKind, ...checkComponent(state, input), stayed: null };
}

function checkComponent(state: EnvironmentState, input: DecisionInput): Verdict {
  const { fact, step } = input;
  const [a, b] = [step.aKey.toString('hex'), step.bKey.toString('hex')];
  if (step.blocked) return refuse('blocked');
  if (isFenced(state, a, fact) || isFenced(state, b, fact)) return refuse('fenced');
  if (step.link === 'allow' || step.link === 'block') {
    markSuspect(state, input, { key: step.aKey, state: step.link === 'allow' ? 'allowed' : 'blocked' });
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
  const reason = areSeparated(state, input.fact, { a: sideA, b: sideB })
    ? 'unlinked'
    : refusalOf(state, input, [sideA, sideB]);
  if (reason !== null) return refuse(reason);
  return join(state, { root: rootA ?? a, side: sideA }, { root: rootB ?? b, side: sideB });
}

/** An erased identity may still be the root of other members. When it is linked again, it rejoins those members. */
function rejoin(state: EnvironmentState, key: string, member: MemberState): void {
  const component = state.fences.has(key) && !state.roots.has(key) ? state.members.get(key) : undefined;
  if (component === undefined) return;
  component.set(key, member);
  state.roots.set(key, key);
}

function refuse(reason: RefusalReason): Verdict {
  return { outcome: 'refused', reason, root: ZERO_KEY, moved: [] };
}

function markSuspect(
  state: EnvironmentState,
  { fact, generation }: Pick<DecisionInput, 'fact' | 'generation'>,
  { key, state: newState }: Pick<Suspect, 'key' | 'state'>,
): void {
  const hex = key.toString('hex');
  const { environmentId, offset, receivedAt: since } = fact;
  if (newState === 'held' && !state.suspects.has(hex) && state.suspects.size >= SUSPECTS_MAX) return;
  state.suspects.set(hex, { environmentId, key, state: newState, since, generation, offset });
}

const NO_SUSPECT_LIMIT = { anonymousIdsMax: Number.POSITIVE_INFINITY, windowMs: 0 };

/** Whether the id linked with an anonymous id is held, or must be held because it has too many anonymous ids. */
function isHeld(state: EnvironmentState, input: DecisionInput, joined: readonly MemberState[]): boolean {
  const { fact, step, limits } = input;
  if (step.aKind !== 'anonymous' && step.bKind !== 'anonymous') return false;
  const key = step.bKind === 'anonymous' && step.aKind !== 'anonymous' ? step.aKey : step.bKey;
  const known = state.suspects.get(key.toString('hex'));
  if (known !== undefined) return known.state === 'held';
  const { anonymousIdsMax, windowMs } = limits.suspectLimit ?? NO_SUSPECT_LIMIT;
  const since = fact.receivedAt - windowMs;
  if (joined.filter(({ kind, linkedAt }) => kind === 'anonymous' && linkedAt > since).length <= anonymousIdsMax)
    return false;
  markSuspect(state, input, { key, state: 'held' });
  return true;
}

function refusalOf(
  state: EnvironmentState,
  input: DecisionInput,
  [sideA, sideB]: readonly [Side, Side],
): RefusalReason | null {
  const { fact, step, limits } = input;
  const joined = [...sideA.values(), ...sideB.values()];
  if (joined.length > limits.identitiesMax) return 'too_many_identities';
  const kindsOfB = new Set([...sideB.values()].map((member) => member.kind));
  // The sides have no identity in common, so a common kind means two different ids.
  const inCommon = [...sideA.values()].map((member) => member.kind).filter((kind) => kindsOfB.has(kind));
  if (step.link === 'alias' && inCommon.some((kind) => limits.uniqueTypes.includes(kind))) return 'two_known_users';
  if (step.link !== 'alias' && inCommon.some((kind) => kind !== 'anonymous')) return 'shared_device';
  if (isHeld(state, input, joined)) return 'suspect';
  const since = fact.receivedAt - limits.anonymousWindowMs;
  const anonymousIds = joined.filter((member) => member.kind === 'anonymous' && member.linkedAt > since);
  return anonymousIds.length > limits.anonymousIdsMax ? 'too_many_anonymous_ids' : null;
}

interface RootedSide {
  root: string;
  side: Side;
}

/** The larger side keeps its person key. If both are equally large, the smaller key wins. */
function join(state: EnvironmentState, a: RootedSide, b: RootedSide): Verdict {
  const isBKept = b.side.size > a.side.size || (b.side.size === a.side.size && b.root < a.root);
  const { root } = isBKept ? b : a;
  const joined = new Map([...a.side, ...b.side].sort(([keyA], [keyB]) => (keyA < keyB ? -1 : 1)));
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
