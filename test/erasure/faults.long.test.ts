import { afterAll, afterEach, beforeAll, describe, it } from 'vitest';
import { killErasers, pauseAnEraser } from './faults/eraser-killed.ts';
import { eraserWaitsForPausedServices, eraserWaitsForPausedWriter, linksAroundTheRequest } from './faults/paused.ts';
import { comeBack, loseRedis, readTheLogAgain } from './faults/returns.ts';
import { failAChange, loseClickHouse } from './faults/stores-away.ts';
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
const timeout = 240_000;

describe('an erasure', { timeout }, () => {
  it('waits for a stopped linker and a stopped writer, and covers what they had not processed yet', () =>
    eraserWaitsForPausedServices(rig));
  it('waits for records that the writer has not stored when the fences are in force', () =>
    eraserWaitsForPausedWriter(rig));
  it('covers a link from just before the cut-off and keeps one from after it; an id linked in between is erased with the person or loses its link', () =>
    linksAroundTheRequest(rig));
  it('ends when ClickHouse is down at several steps and the reply to the receipt is lost', () => loseClickHouse(rig));
  it('ends when a change of a table fails, as soon as the table can be changed again', () => failAChange(rig));
  it('ends when its eraser is killed at each of its steps and another one takes over', () => killErasers(rig));
  it('is not harmed by a paused eraser that continues after another one has finished', () => pauseAnEraser(rig));
});

describe('an erased person', { timeout }, () => {
  it('does not come back when the whole log is read again', () => readTheLogAgain(rig));
  it('stays erased when Redis loses all data in the middle, also after a rebuild', () => loseRedis(rig));
  it('keeps what is done later, links included; an old batch that comes late is dropped without a dead letter', () =>
    comeBack(rig));
  it('is found, counted and swept again when a writer that was paused before the erasure inserts afterwards', () =>
    insertLate(rig));
});
