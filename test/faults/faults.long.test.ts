import { createTables, testStores } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { openTrials } from './trials.ts';

const START_AND_STOP_MAX_MS = 180_000;
/** The sum of all timeouts across all seeds. The first trial also starts the stores. */
const TRIAL_MAX_MS = 800_000;
/** Maximum number of seeds per fault. Some faults depend on timing and do not take effect with every seed. */
const SEEDS_MAX = 3;
const SEEDS: Readonly<Record<number, readonly number[]>> = { 3: [2, 3, 5] };

const { trials, close } = openTrials({
  seeds: SEEDS_MAX,
  // Long enough for the writer, which backs off exponentially, to retry several times.
  outageMs: 3_000,
  withoutIntents: false,
  isChosen: ({ title, brokers = 1 }) => title !== undefined && brokers === 1,
  stores: async () => testStores(),
  verifiesAtEnd: true,
  world: { makeTables: createTables },
});
afterAll(close, START_AND_STOP_MAX_MS);

it.each(trials)('$title (fault $row.fault)', { timeout: TRIAL_MAX_MS }, async ({ row, trySeed, close: end }) => {
  const first = Number(process.env.FAULT_SEED ?? 1);
  const [seeds, completedMin] = [SEEDS[row.fault] ?? [], SEEDS[row.fault]?.length ?? 1];
  try {
    for (const seed of seeds) await trySeed(seed);
    for (let seed = first; row.done < completedMin && seed < first + SEEDS_MAX; seed++) await trySeed(seed);
  } finally {
    await end();
  }
  expect(row).toMatchObject({ failures: [], lost: 0, duplicated: 0, done: completedMin });
});
