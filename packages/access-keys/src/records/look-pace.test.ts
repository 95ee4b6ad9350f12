import fc from 'fast-check';
import { expect, it } from 'vitest';
import { untilNextLook } from './look-pace.ts';

it('waits for the next moment of all that look as often, never for long after one and never twice for the same', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 10, max: 10_000 }),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      (everyMs, nowMs) => {
        const waitMs = untilNextLook(everyMs, nowMs);
        expect(waitMs).toBeGreaterThanOrEqual(2);
        expect(waitMs).toBeLessThanOrEqual(everyMs + 2);
        const beside = (nowMs + waitMs) % everyMs;
        expect(Math.min(beside, everyMs - beside)).toBeLessThan(0.001);
      },
    ),
  );
});
