import { createHash } from 'node:crypto';
import { EpochPresentFault, RestartedFault } from '../faults.ts';
import type { Override } from '../graph.ts';
import { type PeopleRebuild, toUnlinkSideLine } from '../rebuild.ts';
import {
  appliedOf,
  comparePlaces,
  type EnvironmentState,
  environmentOf,
  type Model,
  nameOf,
  removeMember,
} from './model.ts';
import { addUnlinkSide } from './unlink.ts';

/** The rebuild without the consents. */
export function createRebuild(model: Model): Omit<PeopleRebuild, 'loadConsents'> {
  const needNoEpoch = () => {
    if (model.epoch !== null) throw new EpochPresentFault();
  };
  return {
    async mintEpoch(run) {
      if (model.epoch !== null) return model.epoch;
      if (run !== undefined && run !== String(model.run)) throw new RestartedFault();
      model.fencedRun = model.run;
      model.epoch = 'memory';
      return model.epoch;
    },
    async loadOverrides(overrides) {
      needNoEpoch();
      for (const row of overrides) loadOverride(environmentOf(model, row.environmentId), row);
    },
    async loadUnlinkSides(sides) {
      needNoEpoch();
      for (const side of sides) addUnlinkSide(environmentOf(model, side.environmentId), side);
    },
    async loadSuspects(suspects) {
      needNoEpoch();
      for (const suspect of suspects) {
        const state = environmentOf(model, suspect.environmentId).suspects;
        const known = state.get(suspect.key.toString('hex'));
        if (known === undefined || comparePlaces(suspect, known) >= 0) state.set(suspect.key.toString('hex'), suspect);
      }
    },
    async loadDecided(places) {
      needNoEpoch();
      for (const { environmentId, ...place } of places) {
        const state = environmentOf(model, environmentId);
        state.decided.add(`${place.generation}/${place.offset}`);
        if (state.lastDecided === null || comparePlaces(place, state.lastDecided) > 0) state.lastDecided = place;
      }
    },
    async loadApplied(source, offset, note) {
      needNoEpoch();
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
