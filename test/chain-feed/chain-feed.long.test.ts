import { testStores } from '@playline/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { toText } from '../faults/world/report.ts';
import { FAULT_KINDS } from './faults.ts';
import type { Guarantee } from './findings.ts';
import { type FeedRun, runFeed } from './run.ts';

const FIRST_SEED = Number(process.env.FAULT_SEED ?? 1);
const SEEDS = Number(process.env.FEED_SEEDS ?? 1);
const FAULTS = Number(process.env.FEED_FAULTS ?? FAULT_KINDS);
/** A fault takes seconds, and several times as long on a busy machine. */
const RUN_MAX_MS = 60_000 + FAULTS * 40_000;

const GUARANTEES: readonly (readonly [string, Guarantee])[] = [
  ['a follower has exactly the last versions of all activities that match its filters', 'complete'],
  [
    'a reader at the end of the feed has everything up to the watermark, and no row is ever added below the watermark',
    'at the end',
  ],
  ['pages return versions in strictly ascending order, so no version is returned twice', 'in order'],
  ['pages contain no rows above the watermark', 'below the watermark'],
  ['the tables have every row up to a watermark when the watermark is published', 'stable watermarks'],
  [
    'a backward reader receives each activity once in descending order, unless it is updated during the walk',
    'backward reads',
  ],
  [
    'pages contain only published versions at their final positions, and no rejected or aborted versions',
    'correct content',
  ],
  [
    'the table has one row per log record in log order, and each forbidden update has a dead letter',
    'one row per record',
  ],
  ['every API process responds to readers with pages', 'responses'],
];

describe.each(Array.from({ length: SEEDS }, (_, index) => FIRST_SEED + index))(
  'a chain feed while writers are killed, frozen and replaced, watermarks are lost and APIs crash (seed %i)',
  (seed) => {
    let run: FeedRun;
    beforeAll(async () => {
      const onLine = (line: string) => console.error(`chain feed, FAULT_SEED=${seed}: ${line}`);
      run = await runFeed(testStores(), { seed, faults: FAULTS, onLine });
      onLine(toText(run.counts));
    }, RUN_MAX_MS);

    it.each(GUARANTEES)('the feed guarantees: %s', (_, guarantee) => {
      expect(run.findings.of(guarantee)).toEqual([]);
    });

    it('the run includes reads, updates, rejections, aborts and backward walks', () => {
      expect(Object.entries(run.counts).filter(([, count]) => count === 0)).toEqual([]);
      expect(Object.values(run.effects).some((count) => count > 0)).toBe(true);
    });
  },
);
