import { afterAll, beforeAll } from 'vitest';
import { hasStruck, toWords } from './world/reached.ts';
import { runTrial, type Scenario } from './world/trial.ts';
import { verify } from './world/verify.ts';
import { openWorld, type World, type WorldOptions } from './world/world.ts';

/** Four stores and the topics on a busy machine. */
const START_MAX_MS = 180_000;
/** A trial that waits for everything as long as it may. */
export const TRIAL_MAX_MS = 240_000;
/** Seeds to try until the fault strikes in one: most strike in every seed, some cut at a moment that is luck. */
const SEEDS_MAX = 3;

export interface TrialsOptions extends WorldOptions {
  /** Given the world, for tests that ask its stores themselves. */
  onOpen?: (world: World) => void;
}

/**
 * A world for a test file: started before its tests, ended after them.
 * @returns what a test does with a scenario: one seed, or the next ones, too, while its fault does not strike;
 *   FAULT_SEED is the first
 */
export function prepareTrials({ onOpen, ...options }: TrialsOptions = {}): (scenario: Scenario) => Promise<void> {
  const firstSeed = Number(process.env.FAULT_SEED ?? 1);
  let world: World;
  let inDoubt = false;
  beforeAll(async () => {
    world = await openWorld(options);
    onOpen?.(world);
  }, START_MAX_MS);
  afterAll(async () => {
    // Once for the whole log: as its own process it takes longer than a trial's other checks together.
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
      notReached.push(`seed ${seed}: ${toWords(reached)}`);
    }
    throw new Error(`the fault struck in no seed: ${notReached.join(', ')}`);
  };
}
