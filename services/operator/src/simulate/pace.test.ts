import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createLanes } from './pace.ts';

describe('createLanes', () => {
  it('runs the tasks of a lane in order, and never more at once than allowed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(4), { maxLength: 60 }),
        fc.integer({ min: 1, max: 5 }),
        async (plan, tasksMax) => {
          const lanes = createLanes(tasksMax);
          const ended: number[][] = [[], [], [], [], []];
          let most = 0;
          for (const [place, lane] of plan.entries()) {
            await lanes.start(lane, async () => {
              most = Math.max(most, lanes.running);
              // With different numbers of turns, lanes overtake each other.
              for (let turn = 0; turn < place % 4; turn++) await Promise.resolve();
              ended[lane]!.push(place);
            });
          }
          await lanes.drained();
          expect(most).toBeLessThanOrEqual(tasksMax);
          for (const [lane, places] of ended.entries()) {
            expect(places).toEqual([...plan.keys()].filter((place) => plan[place] === lane));
          }
        },
      ),
    );
  });

  it('reports the fault of a task at the end, and runs the others', async () => {
    const lanes = createLanes(2);
    let ran = 0;
    await lanes.start(0, () => Promise.reject(new Error('broken')));
    await lanes.start(0, async () => void ran++);
    await lanes.start(1, async () => void ran++);
    await expect(lanes.drained()).rejects.toThrow('broken');
    expect(ran).toBe(2);
  });
});
