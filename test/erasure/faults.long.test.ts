import { afterAll, afterEach, beforeAll, it } from 'vitest';
import { killErasers, pauseAnEraser } from './faults/eraser-killed.ts';
import { eraserWaitsForPausedServices, linksAroundTheRequest } from './faults/paused.ts';
import { comeBack } from './faults/returns.ts';
import { loseClickHouse } from './faults/stores-away.ts';
import { insertLate } from './faults/zombie.ts';
import { type ErasureRig, openErasureRig, recover } from './rig.ts';

// All tests share one set of processes. Each uses its own people.
let rig: ErasureRig;
beforeAll(async () => {
  rig = await openErasureRig();
}, 240_000);
afterEach(() => recover(rig));
afterAll(() => rig?.close(), 60_000);

/** Twice what the slowest test takes on an idle machine, with a large margin. */
const TEST_MAX_MS = 240_000;

it.each<[string, (rig: ErasureRig) => Promise<void>]>([
  [
    'an erasure waits for a stopped linker and a stopped writer, and covers what they had not processed yet',
    eraserWaitsForPausedServices,
  ],
  [
    'an erasure covers a link from just before the cut-off, keeps a later one, and erases an id linked in between or its link',
    linksAroundTheRequest,
  ],
  ['an erasure ends when ClickHouse is away at several steps and the reply to the receipt is lost', loseClickHouse],
  ['an erasure ends when its eraser is killed at each of its steps and another one takes over', killErasers],
  ['an erasure is not harmed by a paused eraser that continues after another one has finished', pauseAnEraser],
  [
    'an erased person stays erased when Redis loses all data, when the whole log is read again, and when an old batch comes late, and keeps later data',
    comeBack,
  ],
  ['rows that a paused writer inserts after an erasure are found, counted and swept', insertLate],
])('%s', (_, run) => run(rig), TEST_MAX_MS);
