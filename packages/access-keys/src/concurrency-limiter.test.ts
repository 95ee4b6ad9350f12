import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createConcurrencyLimiter } from './concurrency-limiter.ts';

const limits = { concurrentMax: 2, waitingMax: 3, busyMessage: 'Try again later.', retryAfterS: 4 };

/** Jobs that run until the test ends them. */
function createWork() {
  const started: number[] = [];
  const ends = new Map<number, () => void>();
  const peak = { running: 0 };
  const run = (number: number) => () =>
    new Promise<number>((done, fail) => {
      started.push(number);
      // Every third job fails.
      const end = () => (number % 3 === 2 ? fail(new Error(`job ${number}`)) : done(number));
      ends.set(number, () => {
        ends.delete(number);
        end();
      });
      peak.running = Math.max(peak.running, ends.size);
    });
  return { started, ends, peak, run };
}

/** Waits until the promises of ended jobs have settled. */
const settled = () => new Promise<void>((done) => setImmediate(done));

describe('the concurrency limiter', () => {
  it('enforces its limit, preserves the call order and releases all slots, for any sequence of calls', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.constant('call'), fc.nat({ max: 4 })), { maxLength: 60 }),
        async (steps) => {
          const runLimited = createConcurrencyLimiter(limits);
          const { started, ends, peak, run } = createWork();
          const accepted: number[] = [];
          let refused = 0;
          let next = 0;
          for (const step of steps) {
            if (step === 'call') {
              const number = next++;
              accepted.push(number);
              runLimited(run(number)).catch(({ code }) => {
                if (code !== 'TOO_MANY_REQUESTS_ERROR') return;
                refused++;
                accepted.splice(accepted.indexOf(number), 1);
              });
            } else [...ends.values()][step % Math.max(1, ends.size)]?.();
            await settled();
          }
          for (; ends.size > 0; await settled()) for (const end of [...ends.values()]) end();
          expect(started).toEqual(accepted);
          expect(refused).toBe(next - accepted.length);
          expect(peak.running).toBeLessThanOrEqual(limits.concurrentMax);
          const last = runLimited(run(300));
          ends.get(300)?.();
          expect(await last).toBe(300);
        },
      ),
      { numRuns: 200 },
    );
  });
});
