import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type ApplyOutcome, type ConsentRow, type ConsentStore, isLater, type LoggedConsent } from '../../consents.ts';
import { DEFAULT_LIMITS, type GraphLimits, type Override } from '../../graph.ts';
import type { Cutoff, Enforced, ErasureGuards, HoldName } from '../../guards.ts';
import type { People } from '../../people.ts';
import { EpochPresentFault, MissingEpochFault, RestartedFault } from '../../people.ts';
import { type PeopleRebuild, toUnlinkSideLine } from '../../rebuild.ts';
import { createGraph } from './graph.ts';
import {
  appliedOf,
  assertComplete,
  compareOrder,
  createModel,
  cutoffsOfHolds,
  dropSuspect,
  type EnvironmentState,
  environmentOf,
  heldFromOf,
  type Model,
  nameOf,
  raise,
  removeMember,
} from './model.ts';
import { addUnlinkSide } from './unlink.ts';

/** The memory store, with controls for tests. */
export interface MemoryPeople extends People {
  /** Cut-off after which an identity's links wait, or null if there is no hold. */
  holdOf(environmentId: string, key: Buffer): number | null;
  /** Simulates a store that has lost its data. */
  deleteEpoch(): void;
  /** Simulates a store restart, after which the fences are incomplete. */
  restart(): void;
  /** Returns a function that restores the current state, to simulate lost writes. */
  snapshot(): () => void;
}

/** Opens a memory store for unit tests and as a reference model for property tests. */
export function openMemoryPeople(limits: GraphLimits = DEFAULT_LIMITS): MemoryPeople {
  const model = createModel(limits);
  const { loadConsents, ...consents } = createConsents(model);
  return {
    graph: createGraph(model),
    consents,
    guards: createGuards(model),
    rebuild: { ...createRebuild(model), loadConsents },
    readEpoch: async () => model.epoch,
    ready: async () => model.epoch !== null && model.run === model.fencedRun,
    takesWrites: async () => true,
    rewriteLog: async () => {},
    readClockMs: async () => Date.now(),
    close: async () => {},
    holdOf: (environmentId, key) =>
      cutoffsOfHolds(environmentOf(model, environmentId)).get(key.toString('hex')) ?? null,
    deleteEpoch: () => {
      model.epoch = null;
    },
    restart: () => {
      model.run++;
    },
    snapshot: () => {
      const saved = copyModel(model);
      return () => {
        const { environments, progress, notes } = copyModel(saved);
        replace(model.environments, environments);
        replace(model.progress, progress);
        replace(model.notes, notes);
      };
    },
  };
}

type ModelMaps = Pick<Model, 'environments' | 'progress' | 'notes'>;

function copyModel({ environments, progress, notes }: ModelMaps): ModelMaps {
  const states = [...environments].map(([id, state]): [string, EnvironmentState] => {
    const fields = Object.entries(state).map(([name, value]) => [name, copyMaps(value)]);
    return [id, Object.fromEntries(fields) as EnvironmentState];
  });
  return { environments: new Map(states), progress: new Map(progress), notes: new Map(notes) };
}

/** Copies nested maps and sets. Their values are immutable. */
function copyMaps(value: unknown): unknown {
  if (value instanceof Set) return new Set(value);
  return value instanceof Map ? new Map([...value].map(([key, entry]) => [key, copyMaps(entry)])) : value;
}

function replace<V>(map: Map<string, V>, replacement: Map<string, V>): void {
  map.clear();
  for (const [key, value] of replacement) map.set(key, value);
}

/** The memory store never loses consents, so it is always current. */
function createConsents(model: Model): ConsentStore & Pick<PeopleRebuild, 'loadConsents'> {
  const assertEpoch = () => {
    if (model.epoch === null) throw new MissingEpochFault();
  };
  const put = ({ environmentId, identityKey, status, receivedAt, position }: LoggedConsent): ApplyOutcome => {
    const { consents, fences } = environmentOf(model, environmentId);
    const hex = identityKey.toString('hex');
    if (receivedAt <= (fences.get(hex) ?? Number.NEGATIVE_INFINITY)) return 'fenced';
    const stored = consents.get(hex);
    if (stored !== undefined && !isLater(position, stored.position)) return 'superseded';
    consents.set(hex, { status, receivedAt, position });
    return 'applied';
  };
  return {
    apply: async (change) => {
      assertEpoch();
      return put(change);
    },
    read: async (environmentId, identityKey) => {
      assertComplete(model);
      return environmentOf(model, environmentId).consents.get(identityKey.toString('hex')) ?? null;
    },
    loadConsents: async (changes) => changes.map(put),
    syncState: async () => ({ run: 'this process', isCurrent: true, lags: () => false, applied: new Map() }),
    markCurrent: async () => true,
    readStored: async (environmentId, identityKeys) => {
      const { consents } = environmentOf(model, environmentId);
      return identityKeys.flatMap((identityKey) => {
        const stored = consents.get(identityKey.toString('hex'));
        return stored === undefined ? [] : [{ identityKey, ...stored }];
      });
    },
    forget: async (environmentId, consentsToForget) => {
      const { consents } = environmentOf(model, environmentId);
      const isUnchanged = ({ identityKey, ...consent }: ConsentRow) =>
        isDeepStrictEqual(consents.get(identityKey.toString('hex')), consent);
      return consentsToForget.filter(
        (consent) => isUnchanged(consent) && consents.delete(consent.identityKey.toString('hex')),
      ).length;
    },
  };
}

function createGuards(model: Model): ErasureGuards {
  const holdsOf = ({ environmentId }: Pick<HoldName, 'environmentId'>) => environmentOf(model, environmentId).holds;
  const idOf = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');
  return {
    putHold: async (hold) => void holdsOf(hold).set(idOf(hold), hold),
    confirmHold: async (name) => {
      const hold = holdsOf(name).get(idOf(name));
      if (hold === undefined) return false;
      holdsOf(name).set(idOf(name), { ...hold, lapsesAtMs: null });
      return true;
    },
    extendHold: async (hold) => {
      const exists = holdsOf(hold).has(idOf(hold));
      if (exists) holdsOf(hold).set(idOf(hold), hold);
      return exists;
    },
    listHolds: async (environmentId) =>
      [...holdsOf({ environmentId }).values()].map(({ erasureId, cutoffMs, lapsesAtMs }) => {
        return { erasureId, cutoffMs, lapsesAtMs };
      }),
    releaseHold: async (name) => void holdsOf(name).delete(idOf(name)),
    dropLapsedHolds: async (nowMs) => {
      let dropped = 0;
      for (const { holds } of model.environments.values())
        for (const [id, { lapsesAtMs }] of holds)
          if (lapsesAtMs !== null && lapsesAtMs <= nowMs && holds.delete(id)) dropped++;
      return dropped;
    },
    heldFrom: async (environmentId, keys) => {
      if (model.epoch === null) throw new MissingEpochFault();
      return keys.map((key) => heldFromOf(environmentOf(model, environmentId), key));
    },
    fence: async (cutoffs) => {
      for (const { environmentId, key, cutoffMs } of cutoffs)
        raise(environmentOf(model, environmentId).fences, key, cutoffMs);
    },
    enforce: async (cutoffs) => enforce(model, cutoffs),
    fenceStatus: async () => {
      const isComplete = model.run === model.fencedRun;
      const isRestorable = !isComplete && model.epoch !== null;
      return { run: String(model.run), isComplete, isRestorable, lacks: () => isRestorable };
    },
    completeFences: async (run) => {
      if (run !== String(model.run)) return false;
      model.fencedRun = model.run;
      return true;
    },
  };
}

function enforce(model: Model, cutoffs: readonly Cutoff[]): Enforced {
  let [links, consents] = [0, 0];
  for (const { environmentId, key, cutoffMs } of cutoffs) {
    const state = environmentOf(model, environmentId);
    raise(state.fences, key, cutoffMs);
    const hex = key.toString('hex');
    const member = state.members.get(state.roots.get(hex) ?? '')?.get(hex);
    if (member !== undefined && member.linkedAt <= cutoffMs && removeMember(state, hex) !== undefined) {
      state.unlinkSides.delete(hex);
      links++;
    }
    const sides = (state.unlinkSides.get(hex) ?? []).filter(({ unlinkedAt }) => unlinkedAt > cutoffMs);
    if (sides.length === 0) state.unlinkSides.delete(hex);
    else state.unlinkSides.set(hex, sides);
    dropSuspect(state, hex, cutoffMs);
    const consent = state.consents.get(hex);
    if (consent !== undefined && consent.receivedAt <= cutoffMs && state.consents.delete(hex)) consents++;
  }
  return { links, consents };
}

function createRebuild(model: Model): Omit<PeopleRebuild, 'loadConsents'> {
  const assertNoEpoch = () => {
    if (model.epoch !== null) throw new EpochPresentFault();
  };
  return {
    async missing() {
      assertNoEpoch();
      return () => true;
    },
    async mintEpoch(run) {
      if (model.epoch !== null) return model.epoch;
      if (run !== undefined && run !== String(model.run)) throw new RestartedFault();
      model.fencedRun = model.run;
      model.epoch = 'memory';
      return model.epoch;
    },
    async loadOverrides(overrides) {
      assertNoEpoch();
      for (const row of overrides) loadOverride(environmentOf(model, row.environmentId), row);
    },
    async loadUnlinkSides(sides) {
      assertNoEpoch();
      for (const side of sides) addUnlinkSide(environmentOf(model, side.environmentId), side);
    },
    async loadSuspects(suspects) {
      assertNoEpoch();
      for (const suspect of suspects) {
        const state = environmentOf(model, suspect.environmentId).suspects;
        const known = state.get(suspect.key.toString('hex'));
        if (known === undefined || compareOrder(suspect, known) >= 0) state.set(suspect.key.toString('hex'), suspect);
      }
    },
    async loadDecided(facts) {
      assertNoEpoch();
      for (const { environmentId, ...fact } of facts) {
        const state = environmentOf(model, environmentId);
        state.decided.add(`${fact.generation}/${fact.offset}`);
        if (state.lastDecided === null || compareOrder(fact, state.lastDecided) > 0) state.lastDecided = fact;
      }
    },
    async loadApplied(source, offset, note) {
      assertNoEpoch();
      if (note !== undefined) model.notes.set(nameOf(source), note);
      model.progress.set(nameOf(source), Math.max(offset, appliedOf(model, source)));
    },
    async *identities() {
      for (const [environmentId, { roots }] of model.environments)
        for (const [key, root] of roots)
          yield { environmentId, key: Buffer.from(key, 'hex'), root: Buffer.from(root, 'hex') };
    },
    async digest(environmentId) {
      const { roots, members, unlinkSides } = environmentOf(model, environmentId);
      const lines = [...roots].map(([key, root]) => {
        const member = members.get(root)!.get(key)!;
        return `${key} ${root} ${member.kind} ${member.linkedAt}\n`;
      });
      for (const each of [...unlinkSides.values()].flat().map(toUnlinkSideLine)) lines.push(each);
      return createHash('sha256').update(lines.sort().join('')).digest('hex');
    },
  };
}

function loadOverride(state: EnvironmentState, row: Override): void {
  const key = row.key.toString('hex');
  const root = row.root.toString('hex');
  const known = removeMember(state, key);
  const members = state.members.get(root) ?? new Map();
  state.members.set(root, members.set(key, known ?? { kind: row.kind, linkedAt: row.linkedAt }));
  state.roots.set(key, root);
}
