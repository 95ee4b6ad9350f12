import type { Stores } from '@playline/testkit';
import { CLUSTER_FAULTS, createClusterTrials } from './cluster-faults.ts';
import { CLUSTER_MINT_FAULTS, createClusterMintTrials } from './cluster-mint-faults.ts';
import { createMintTrials, MINT_FAULTS } from './mint-faults.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { verify } from './world/operate.ts';
import { createRow, type FaultTrial, type Row, runSeed } from './world/report.ts';
import { runTrial, type Scenario } from './world/trial.ts';
import { openWorld, type World, type WorldOptions } from './world/world.ts';
import { createWriterTrials, WRITER_FAULTS, type WriterFaultOptions } from './writer-faults.ts';

export const FAULTS: readonly Fault[] = [
  ...SCENARIOS,
  ...CLUSTER_FAULTS,
  ...CLUSTER_MINT_FAULTS,
  ...WRITER_FAULTS,
  ...MINT_FAULTS,
];

export interface Fault extends Pick<Row, 'fault' | 'tried'> {
  readonly title?: string;
  readonly brokers?: number;
}

export interface TrialsOptions extends WriterFaultOptions {
  readonly isChosen: (fault: Fault) => boolean;
  /** Stores for writer and minter faults. Default: the stores of the single-broker world. */
  readonly stores?: () => Promise<Stores>;
  // Runs the operator's `verify` only once at the end, because it takes longer than all other checks after a seed.
  readonly verifiesAtEnd?: boolean;
  readonly world?: WorldOptions;
}

// Creates the trials of a run. There is one world per broker count, started on first use.
export function openTrials({ isChosen, verifiesAtEnd = false, world: worldOptions, ...options }: TrialsOptions) {
  const worlds = new Map<number, Promise<World>>();
  const worldOf = ({ brokers = 1 }: Pick<Scenario, 'brokers'>) => {
    const world = worlds.get(brokers) ?? openWorld({ ...worldOptions, brokers });
    worlds.set(brokers, world);
    return world;
  };
  const stores = options.stores ?? (async () => (await worldOf({})).stack.file);
  const run = async (scenario: Scenario, seed: number) => {
    const world = await worldOf(scenario);
    let isDamaged = true;
    try {
      const end = await runTrial(world, scenario, seed);
      if (!verifiesAtEnd || scenario.replacesLog) await verify(world);
      isDamaged = scenario.replacesLog === true;
      return end;
    } finally {
      if (isDamaged) await world.renew();
    }
  };
  const createScenarioTrial = (scenario: Scenario): FaultTrial => {
    const row = createRow(scenario, options.seeds);
    const trySeed = (seed: number) => runSeed(row, seed, () => run(scenario, seed));
    return { row, title: scenario.title, trySeed, close: async () => {} };
  };
  const { report } = worldOptions ?? {};
  const cluster = { isChosen, seeds: options.seeds, ...(report && { report }) };
  const trials = [
    ...SCENARIOS.filter(isChosen).map(createScenarioTrial),
    ...createClusterTrials(cluster),
    ...createClusterMintTrials(cluster),
    ...createWriterTrials(stores, { isChosen, ...options }),
    ...createMintTrials(stores, { isChosen, seeds: options.seeds }),
  ].sort((a, b) => a.row.fault - b.row.fault);
  return {
    trials,
    worldOf,
    /** Starts the smallest world that the chosen faults need. In-memory faults need no world. */
    start: async () => {
      const chosen: readonly Fault[] = [...SCENARIOS, ...WRITER_FAULTS].filter(isChosen);
      const brokers = chosen.map((fault) => fault.brokers ?? 1);
      if (brokers.length > 0) await worldOf({ brokers: Math.min(...brokers) });
    },
    close: async () => {
      const closed = await Promise.allSettled(trials.map((trial) => trial.close()));
      const opened = await Promise.all(worlds.values());
      try {
        if (verifiesAtEnd) for (const world of opened) await verify(world);
        for (const end of closed) if (end.status === 'rejected') throw end.reason;
      } finally {
        await Promise.allSettled(opened.map((world) => world.close()));
      }
    },
  };
}
