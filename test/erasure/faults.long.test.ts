import { afterAll, afterEach, beforeAll, it } from 'vitest';
import { loseClickHouse } from './faults/clickhouse-unavailable.ts';
import { killErasers, pauseAnEraser } from './faults/eraser-killed.ts';
import { eraserWaitsForPausedServices, linksAroundTheRequest } from './faults/paused.ts';
import { loseAndReread } from './faults/returns.ts';
import { insertLate } from './faults/zombie.ts';
import { type ErasureRig, openErasureRig, recover } from './rig.ts';

// All tests share one set of processes. Each test uses its own people.
let rig: ErasureRig;
beforeAll(async () => {
  rig = await openErasureRig();
}, 240_000);
afterEach(() => recover(rig));
afterAll(() => rig?.close(), 60_000);

/** More than twice the duration of the slowest test on an idle machine. */
const TEST_MAX_MS = 240_000;

it.each<[string, (rig: ErasureRig) => Promise<void>]>([
  [
    'an erasure waits for a stopped linker and a stopped writer, and covers the records that they had not processed yet',
    eraserWaitsForPausedServices,
  ],
  [
    'an erasure covers a link from just before the cut-off, keeps a later link, and erases an id linked in between or its link',
    linksAroundTheRequest,
  ],
  [
    'an erasure completes when ClickHouse is unavailable at several steps and the response to the receipt is lost',
    loseClickHouse,
  ],
  ['an erasure completes when its eraser is killed at each step and another eraser takes over', killErasers],
  ['an erasure is not affected by a paused eraser that resumes after another eraser has finished', pauseAnEraser],
  [
    'an erased person stays erased, and keeps later data, when Redis loses all data, the whole log is reread, and an old batch arrives late',
    loseAndReread,
  ],
  ['rows that a paused writer inserts after an erasure are found, counted and swept', insertLate],
])('%s', (_, run) => run(rig), TEST_MAX_MS);
