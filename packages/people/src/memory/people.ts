import { DEFAULT_LIMITS, type GraphLimits } from '../graph.ts';
import type { People } from '../people.ts';
import { createConsents } from './consents.ts';
import { createGraph } from './graph.ts';
import { createGuards } from './guards.ts';
import { createModel, cutoffsOfHolds, environmentOf } from './model.ts';
import { createRebuild } from './rebuild.ts';

/** People in memory, for tests. */
export interface MemoryPeople extends People {
  /** Cut-off after which links of an identity wait; null without a hold. */
  holdOf(environmentId: string, key: Buffer): number | null;
  /** Simulates a store that has lost its data. */
  loseEpoch(): void;
  /** Simulates a restart of the store: its fences count as incomplete. */
  restart(): void;
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
    close: async () => {},
    holdOf: (environmentId, key) =>
      cutoffsOfHolds(environmentOf(model, environmentId)).get(key.toString('hex')) ?? null,
    loseEpoch: () => {
      model.epoch = null;
    },
    restart: () => {
      model.run++;
    },
  };
}
