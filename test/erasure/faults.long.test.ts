import { afterAll, afterEach, beforeAll, it } from 'vitest';
import { loseClickHouse } from './faults/clickhouse-unavailable.ts';
import { killErasers, pauseEraser } from './faults/eraser-killed.ts';
import { linkBeforeAndAfterRequest, pauseLinkerAndWriter } from './faults/paused.ts';
import { loseAndReread } from './faults/returns.ts';
import { insertLate } from './faults/zombie.ts';
import { type ErasureRig, openErasureRig, recover } from './rig.ts';

// All tests use the same processes but different people.
let rig: ErasureRig;
beforeAll(async () => {
  rig = await openErasureRig();
}, 240_000);
afterEach(() => recover(rig));
afterAll(() => rig?.close(), 60_000);

/** More than twice as long as the slowest test on an idle machine. */
const TEST_MAX_MS = 240_000;

it.each<[string, (rig: ErasureRig) => Promise<void>]>([
  [
    'an erasure waits for a stopped linker and writer, and covers records that they had not processed yet',
    pauseLinkerAndWriter,
  ],
  ['an erasure covers links before the cut-off and keeps later links', linkBeforeAndAfterRequest],
  [
    "an erasure completes even if ClickHouse is unavailable at several steps and the receipt's response is lost",
    loseClickHouse,
  ],
  ['an erasure completes even if its eraser is killed at each step', killErasers],
  ['a paused eraser that resumes after another eraser has finished deletes no later data', pauseEraser],
  ['an erased person stays erased when Redis loses all data, the log is reread or an old batch arrives', loseAndReread],
  ['a scrub finds, counts and deletes rows that a paused writer inserts after an erasure', insertLate],
])('%s', (_, run) => run(rig), TEST_MAX_MS);
