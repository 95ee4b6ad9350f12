import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createTurns } from './turns.ts';

const limits = { concurrentMax: 2, waitingMax: 3, full: 'Come later.', retryAfterS: 4 };

/** Work that the test ends. */
function createWork() {
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  const most = { running: 0 };
  const run = (number: number) => () =>
    new Promise<number>((done, fail) => {
      begun.push(number);
      // Every third piece of work fails.
      const end = () => (number % 3 === 2 ? fail(new Error(`work ${number}`)) : done(number));
      ends.set(number, () => {
        ends.delete(number);
        end();
      });
      most.running = Math.max(most.running, ends.size);
    });
  return { begun, ends, most, run };
}

/** Waits for the promises of ended work. */
const settled = () => new Promise<void>((done) => setImmediate(done));

describe('turns', () => {
  it('keep their limit and order in any sequence, and are free at the end', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.constant('come'), fc.nat({ max: 4 })), { maxLength: 60 }),
        async (steps) => {
          const inTurn = createTurns(limits);
          const { begun, ends, most, run } = createWork();
          const taken: number[] = [];
          let refused = 0;
          let next = 0;
          for (const step of steps) {
            if (step === 'come') {
              const number = next++;
              taken.push(number);
              inTurn(run(number)).catch(({ code }) => {
                if (code !== 'TOO_MANY_REQUESTS_ERROR') return;
                refused++;
                taken.splice(taken.indexOf(number), 1);
              });
            } else [...ends.values()][step % Math.max(1, ends.size)]?.();
            await settled();
          }
          for (; ends.size > 0; await settled()) for (const end of [...ends.values()]) end();
          expect(begun).toEqual(taken);
          expect(refused).toBe(next - taken.length);
          expect(most.running).toBeLessThanOrEqual(limits.concurrentMax);
          const last = inTurn(run(300));
          ends.get(300)?.();
          expect(await last).toBe(300);
        },
      ),
      { numRuns: 200 },
    );
  });
});
