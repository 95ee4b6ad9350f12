import { testStores } from '@playline/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { toWords } from '../faults/world/reached.ts';
import { ALL_KINDS } from './faults.ts';
import type { Promised } from './findings.ts';
import { type FeedRun, runFeed } from './run.ts';

const FIRST_SEED = Number(process.env.FAULT_SEED ?? 1);
const SEEDS = Number(process.env.FEED_SEEDS ?? 1);
const FAULTS = Number(process.env.FEED_FAULTS ?? ALL_KINDS);
/** A fault takes seconds, and several times that on a busy machine. */
const RUN_MAX_MS = 60_000 + FAULTS * 40_000;

const GUARANTEES: readonly (readonly [string, Promised])[] = [
  ['whoever follows it has the last version of every activity that passes the filters, and nothing else', 'complete'],
  [
    'whoever has come to its end has everything that stood at the watermark: nothing comes behind a reader',
    'at the end',
  ],
  ['is given in strictly growing order, so no version twice', 'in order'],
  ['shows nothing above the watermark', 'below the watermark'],
  [
    'has in its tables all that ever stands at or below a watermark, as soon as the watermark is published',
    'standing watermarks',
  ],
  ['gives whoever walks back everything that is not updated meanwhile, once, in descending order', 'backwards'],
  [
    'shows only versions as they were sent, at the place that they keep, and none that was refused or aborted',
    'true content',
  ],
  [
    'has one row a record of the log, in the order of the log, and a dead letter of each update that must not be',
    'one row a record',
  ],
  ['answers every reader with a page, whatever process it asks', 'answers'],
];

describe.each(Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index))(
  'the feed of a chain, while writers are killed, frozen and replaced, watermarks are lost and APIs die (seed %i),',
  (seed) => {
    let run: FeedRun;
    beforeAll(async () => {
      const onLine = (line: string) => console.error(`chain feed, FAULT_SEED=${seed}: ${line}`);
      run = await runFeed(testStores(), { seed, faults: FAULTS, onLine });
      onLine(toWords(run.counts));
    }, RUN_MAX_MS);

    it.each(GUARANTEES)('keeps its promise: %s', (_, promise) => {
      expect(run.findings.of(promise)).toEqual([]);
    });

    it('has seen reads, updates, refusals, aborts and walks back, so the tests above have checked something', () => {
      expect(Object.entries(run.counts).filter(([, count]) => count === 0)).toEqual([]);
      expect(Object.values(run.reached).some((count) => count > 0)).toBe(true);
    });
  },
);
