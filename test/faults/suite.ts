import { afterAll, beforeAll } from 'vitest';
import { runTrial, type Scenario } from './world/trial.ts';
import { openWorld, type World } from './world/world.ts';

/** Four stores and the topics on a busy machine. */
const START_MAX_MS = 180_000;
/** A trial that waits for everything as long as it may. */
export const TRIAL_MAX_MS = 240_000;
/** A few of the many seeds that `npm run faults` tries. */
const SEEDS = 1;

/**
 * A world for a test file: started before its tests, ended behind them.
 * @returns what a test does with a scenario: a seed or two, FAULT_SEED being the first
 */
export function prepareTrials(seeds = SEEDS): (scenario: Scenario) => Promise<void> {
  const firstSeed = Number(process.env.FAULT_SEED ?? 1);
  let world: World;
  let inDoubt = false;
  beforeAll(async () => {
    world = await openWorld();
  }, START_MAX_MS);
  afterAll(() => world?.close(), START_MAX_MS);

  return async (scenario) => {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      if (inDoubt) await world.renew();
      inDoubt = true;
      await runTrial(world, scenario, seed);
      inDoubt = false;
    }
  };
}
