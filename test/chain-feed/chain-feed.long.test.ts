import { testStores } from '@playline/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { toText } from '../faults/world/report.ts';
import { ALL_KINDS } from './faults.ts';
import type { Promised } from './findings.ts';
import { type FeedRun, runFeed } from './run.ts';

const FIRST_SEED = Number(process.env.FAULT_SEED ?? 1);
const SEEDS = Number(process.env.FEED_SEEDS ?? 1);
const FAULTS = Number(process.env.FEED_FAULTS ?? ALL_KINDS);
/** A fault takes seconds, and several times that on a busy machine. */
const RUN_MAX_MS = 60_000 + FAULTS * 40_000;

const GUARANTEES: readonly (readonly [string, Promised])[] = [
  ['a follower has the last version of every activity that passes the filters, and nothing else', 'complete'],
  ['a reader at the end has everything up to the watermark, and nothing is added before it', 'at the end'],
  ['is given in strictly growing order, so no version twice', 'in order'],
  ['shows nothing above the watermark', 'below the watermark'],
  ['the tables have every row up to a watermark when it is published', 'stable watermarks'],
  ['a backward reader gets everything that is not updated in between, once, in descending order', 'backwards'],
  ['pages have only published versions at their final position, and none that was refused or aborted', 'true content'],
  [
    'has one row a record of the log, in the order of the log, and a dead letter of each update that must not be',
    'one row a record',
  ],
  ['every process answers readers with a page', 'answers'],
];

describe.each(Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index))(
  'the feed of a chain, while writers are killed, frozen and replaced, watermarks are lost and APIs die (seed %i),',
  (seed) => {
    let run: FeedRun;
    beforeAll(async () => {
      const onLine = (line: string) => console.error(`chain feed, FAULT_SEED=${seed}: ${line}`);
      run = await runFeed(testStores(), { seed, faults: FAULTS, onLine });
      onLine(toText(run.counts));
    }, RUN_MAX_MS);

    it.each(GUARANTEES)('the feed keeps its guarantee: %s', (_, promise) => {
      expect(run.findings.of(promise)).toEqual([]);
    });

    it('the run had reads, updates, refusals, aborts and backward walks', () => {
      expect(Object.entries(run.counts).filter(([, count]) => count === 0)).toEqual([]);
      expect(Object.values(run.reached).some((count) => count > 0)).toBe(true);
    });
  },
);
