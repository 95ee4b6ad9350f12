import { MissingEpochFault, MissingHoldFault } from '../faults.ts';
import { type Applied, type FactBlock, GraphBehindFault, type IdentityGraph } from '../graph.ts';
import type { LoggedFact, MovedIdentity, StepDecision } from '../identities/decisions.ts';
import { type GraphFact, namedBy } from '../identities/steps.ts';
import { toSuspects } from '../rebuild.ts';
import { decideStep, rejoin, suspect } from './decide.ts';
import {
  appliedOf,
  assertWhole,
  comparePlaces,
  cutoffsOfHolds,
  dropSuspect,
  type EnvironmentState,
  environmentOf,
  heldFromOf,
  isFenced,
  type Model,
  nameOf,
  type Place,
  removeMember,
} from './model.ts';
import { decideUnlink, noteSide } from './unlink.ts';

export function createGraph(model: Model): IdentityGraph {
  return {
    ...createFactCalls(model),
    ...createQuestions(model),
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
  const needEpoch = () => {
    if (model.epoch === null) throw new MissingEpochFault();
  };
  return {
    async apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void) {
      assertWhole(model);
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
      needEpoch();
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
 * Facts decided before a rebuild are part of the rebuilt graph. Undecided facts before the last decided one were
 * parked.
 */
function standingOf({ decided, lastDecided }: EnvironmentState, place: Place): 'new' | 'decided' | 'parked' {
  if (lastDecided === null || comparePlaces(place, lastDecided) > 0) return 'new';
  return decided.has(`${place.generation}/${place.offset}`) ? 'decided' : 'parked';
}

function applyFact(model: Model, fact: LoggedFact, generation: number): Applied {
  const state = environmentOf(model, fact.environmentId);
  if (fact.steps.length === 0 && fact.unlink === undefined) return { kind: 'done' };
  const standing = standingOf(state, { generation, offset: fact.offset });
  if (standing === 'decided') return { kind: 'done' };
  const logged = fact.logged === 'parked' ? [] : (fact.logged ?? []);
  for (const decision of logged) applyLogged(state, { fact, generation, decision });
  if (logged.length > 0 && logged.length >= fact.steps.length) return { kind: 'decided', decisions: logged };
  const isParked = standing === 'parked' || fact.logged === 'parked';
  const person = parkedBy(state, fact) ?? (isParked ? personOf(state, namedBy(fact)[0]!) : null);
  if (person !== null) return { kind: 'parked', person };
  if (fact.unlink !== undefined)
    return { kind: 'decided', decisions: [decideUnlink(state, { ...fact, unlink: fact.unlink, generation })] };
  const { limits } = model;
  const steps = fact.steps.slice(logged.length);
  const others = steps.map((step) => decideStep(state, { fact, step, limits, generation }));
  return { kind: 'decided', decisions: [...logged, ...others] };
}

function createQuestions(model: Model): Pick<IdentityGraph, 'rootOf' | 'rootsOf' | 'membersOf' | 'suspects'> {
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
      const of = members.get(roots.get(key.toString('hex')) ?? '') ?? new Map();
      return [...of].sort().map(([hex, member]) => ({ key: Buffer.from(hex, 'hex'), ...member }));
    },
  };
}

/** Only the fact that it was parked is recorded, not the hold, because holds change. */
function toRecorded(model: Model, fact: GraphFact, recorded: Applied | undefined): Applied {
  if (recorded?.kind !== 'parked') return recorded ?? { kind: 'done' };
  const state = environmentOf(model, fact.environmentId);
  return { kind: 'parked', person: parkedBy(state, fact) ?? personOf(state, namedBy(fact)[0]!) };
}

function personOf(state: EnvironmentState, key: Buffer): Buffer {
  const hex = key.toString('hex');
  return Buffer.from(state.roots.get(hex) ?? hex, 'hex');
}

/** Person key of the first person of the fact with a hold that the fact is newer than; null when there is none. */
function parkedBy(state: EnvironmentState, fact: GraphFact): Buffer | null {
  const cutoffs = cutoffsOfHolds(state);
  const isHeld = (key: Buffer) => fact.receivedAt > (heldFromOf(state, key, cutoffs) ?? Number.POSITIVE_INFINITY);
  const held = namedBy(fact).find(isHeld);
  return held === undefined ? null : personOf(state, held);
}

interface Logged {
  readonly fact: GraphFact;
  readonly generation: number;
  readonly decision: StepDecision;
}

/** Applies a decision of the log as it is. Only fences are checked, because an erasure may have come since. */
function applyLogged(state: EnvironmentState, logged: Logged): void {
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
