import { afterAll, afterEach, beforeAll, describe, it } from 'vitest';
import { killErasers, pauseAnEraser } from './faults/eraser-killed.ts';
import { judgeLinksAroundTheRequest, waitForStandingServices, waitForStandingWriter } from './faults/paused.ts';
import { comeBack, loseRedis, readTheLogAgain } from './faults/returns.ts';
import { failAChange, loseClickHouse } from './faults/stores-away.ts';
import { insertLate } from './faults/zombie.ts';
import { type ErasureRig, openErasureRig, recover } from './rig.ts';

// All tests share one set of processes, and each has its own people.
let rig: ErasureRig;
beforeAll(async () => {
  rig = await openErasureRig();
}, 240_000);
afterEach(() => recover(rig));
afterAll(() => rig?.close(), 60_000);

/** Twice what the slowest of them takes on a quiet machine, and much more. */
const timeout = 240_000;

describe('an erasure', { timeout }, () => {
  it('waits for a linker and a writer that stand, and takes along what they had not done yet', () =>
    waitForStandingServices(rig));
  it('waits for what the writer has not stored when the fences stand', () => waitForStandingWriter(rig));
  it('takes a link from just before along, keeps one from behind the cut-off; one between is the person or nobody', () =>
    judgeLinksAroundTheRequest(rig));
  it('ends when ClickHouse goes away at several steps, and its answer to the receipt is lost', () =>
    loseClickHouse(rig));
  it('ends when a change of a table fails, once the table can be changed again', () => failAChange(rig));
  it('ends when whoever works on it is killed at each of its steps, and another one takes over', () =>
    killErasers(rig));
  it('is not harmed by an eraser that was paused in the middle and goes on when another one has finished', () =>
    pauseAnEraser(rig));
});

describe('an erased person', { timeout }, () => {
  it('does not come back when the whole log is read again', () => readTheLogAgain(rig));
  it('is erased beside a Redis that loses everything in the middle, and does not come back with a rebuild', () =>
    loseRedis(rig));
  it('keeps what is done later, links too; an old batch that comes late is dropped without a dead letter', () =>
    comeBack(rig));
  it('is found, counted and swept again when a writer inserts that was paused before the erasure', () =>
    insertLate(rig));
});
