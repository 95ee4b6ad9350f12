import { MissingEpochFault } from '../faults.ts';
import type { Cutoff, Enforced, ErasureGuards, HoldName } from '../guards.ts';
import { dropSuspect, environmentOf, heldFromOf, type Model, raise, removeMember } from './model.ts';

export function createGuards(model: Model): ErasureGuards {
  const holdsOf = ({ environmentId }: Pick<HoldName, 'environmentId'>) => environmentOf(model, environmentId).holds;
  const idOf = ({ erasureId }: Pick<HoldName, 'erasureId'>) => erasureId.toString('hex');
  return {
    place: async (hold) => void holdsOf(hold).set(idOf(hold), hold),
    confirm: async (name) => {
      const hold = holdsOf(name).get(idOf(name));
      if (hold === undefined) return false;
      holdsOf(name).set(idOf(name), { ...hold, lapsesAtMs: null });
      return true;
    },
    extend: async (hold) => {
      const stands = holdsOf(hold).has(idOf(hold));
      if (stands) holdsOf(hold).set(idOf(hold), hold);
      return stands;
    },
    list: async (environmentId) =>
      [...holdsOf({ environmentId }).values()].map(({ erasureId, cutoffMs, lapsesAtMs }) => {
        return { erasureId, cutoffMs, lapsesAtMs };
      }),
    release: async (name) => void holdsOf(name).delete(idOf(name)),
    dropLapsed: async (nowMs) => {
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
    fenceStatus: async () => ({ run: String(model.run), isComplete: model.run === model.fencedRun }),
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
