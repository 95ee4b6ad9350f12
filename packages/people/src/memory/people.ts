import { DEFAULT_LIMITS, type GraphLimits } from '../graph.ts';
import type { People } from '../people.ts';
import { createConsents } from './consents.ts';
import { createGraph } from './graph.ts';
import { createGuards } from './guards.ts';
import { createModel, cutoffsOfHolds, type EnvironmentState, environmentOf, type Model } from './model.ts';
import { createRebuild } from './rebuild.ts';

/** People in memory, for tests. */
export interface MemoryPeople extends People {
  /** Cut-off after which links of an identity wait; null without a hold. */
  holdOf(environmentId: string, key: Buffer): number | null;
  /** Simulates a store that has lost its data. */
  loseEpoch(): void;
  /** Simulates a restart of the store: its fences count as incomplete. */
  restart(): void;
  /** Returns a function that restores the present state: it simulates a store that has lost its last writes. */
  snapshot(): () => void;
}

/** Opens a plain model of the store in memory. Unit tests use it, and property tests compare the real store with it. */
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
    loseEpoch: () => {
      model.epoch = null;
    },
    restart: () => {
      model.run++;
    },
    snapshot: () => {
      const kept = copyModel(model);
      return () => {
        const { environments, progress, notes } = copyModel(kept);
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

/** Maps and sets are changed in place; everything in them is replaced. */
function copyMaps(value: unknown): unknown {
  if (value instanceof Set) return new Set(value);
  return value instanceof Map ? new Map([...value].map(([key, one]) => [key, copyMaps(one)])) : value;
}

function replace<V>(map: Map<string, V>, by: Map<string, V>): void {
  map.clear();
  for (const [key, value] of by) map.set(key, value);
}
