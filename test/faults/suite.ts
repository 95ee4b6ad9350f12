import { createTables } from '@playline/testkit';
import { afterAll, beforeAll } from 'vitest';
import { verify } from './world/operate.ts';
import { hasStruck, toText } from './world/reached.ts';
import { runTrial, type Scenario } from './world/trial.ts';
import { openWorld, type World, type WorldOptions } from './world/world.ts';

const START_MAX_MS = 180_000;
/** Longest time of a trial in which every wait takes as long as allowed. */
export const TRIAL_MAX_MS = 240_000;
/** Number of seeds to try until the fault takes effect. Some faults depend on timing. */
const SEEDS_MAX = 3;

export interface TrialsOptions extends WorldOptions {
  onOpen?: (world: World) => void;
}

/**
 * Opens a world for a test file.
 * @returns a function that tries a scenario with FAULT_SEED, and with the next seeds while the fault does not take effect
 */
export function prepareTrials({ onOpen, ...options }: TrialsOptions = {}): (scenario: Scenario) => Promise<void> {
  const firstSeed = Number(process.env.FAULT_SEED ?? 1);
  let world: World;
  let inDoubt = false;
  beforeAll(async () => {
    world = await openWorld({ makeTables: createTables, ...options });
    onOpen?.(world);
  }, START_MAX_MS);
  afterAll(async () => {
    // Once for the whole log, because it takes longer than all other checks together.
    try {
      if (world !== undefined && !inDoubt) await verify(world);
    } finally {
      await world?.close();
    }
  }, START_MAX_MS);

  return async (scenario) => {
    const notReached: string[] = [];
    for (let seed = firstSeed; seed < firstSeed + SEEDS_MAX; seed++) {
      if (inDoubt) await world.renew();
      inDoubt = true;
      const { reached } = await runTrial(world, scenario, seed);
      if (scenario.replacesLog) await verify(world);
      inDoubt = scenario.replacesLog === true;
      if (hasStruck(reached)) return;
      notReached.push(`seed ${seed}: ${toText(reached)}`);
    }
    throw new Error(`the fault struck in no seed: ${notReached.join(', ')}`);
  };
}
