import { testStores } from '@playline/testkit';
import { expect, it, onTestFinished } from 'vitest';
import { createWriterTrial, WRITER_FAULTS } from './writer-faults.ts';

/** A seed takes seconds, and several times that on a busy machine. */
const TRIAL_MAX_MS = 800_000;
/** Long enough for some attempts of the writer, whose pauses double. The command uses minutes. */
const OPTIONS = { seeds: 1, awayMs: 3_000, withoutIntents: false };
/** Seeds that show more than the first one. */
const SEEDS: Readonly<Record<number, readonly number[]>> = { 4: [0, 3], 11: [1, 2] };

it.each(WRITER_FAULTS.filter(({ title }) => title !== undefined))(
  '$title (fault $fault)',
  { timeout: TRIAL_MAX_MS },
  async (fault) => {
    const seeds = SEEDS[fault.fault] ?? [1];
    const { row, trySeed, close } = createWriterTrial(fault, testStores(), { ...OPTIONS, seeds: seeds.length });
    onTestFinished(close);
    for (const seed of seeds) await trySeed(seed);
    expect(row).toMatchObject({ failures: [], lost: 0, doubled: 0 });
    expect(row.done + row.notReached.length).toBe(seeds.length);
  },
);
