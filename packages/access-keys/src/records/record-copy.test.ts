import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { msUntilNextPoll, nextPoll } from './record-copy.ts';

it('msUntilNextPoll returns the time until the next multiple of the interval, never the same multiple twice', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 10, max: 10_000 }),
      fc.double({ min: 0, max: 1e9, noNaN: true }),
      (intervalMs, nowMs) => {
        const waitMs = msUntilNextPoll(intervalMs, nowMs);
        expect(waitMs).toBeGreaterThanOrEqual(2);
        expect(waitMs).toBeLessThanOrEqual(intervalMs + 2);
        const remainder = (nowMs + waitMs) % intervalMs;
        expect(Math.min(remainder, intervalMs - remainder)).toBeLessThan(0.001);
      },
    ),
  );
});

describe('polling loops', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('with the same interval share one timer and wake together', async () => {
    const { signal } = new AbortController();
    const polledAt: number[] = [];
    const loop = async () => {
      await nextPoll(500, signal);
      polledAt.push(performance.now());
    };
    const loops = [loop(), loop()];
    await vi.advanceTimersByTimeAsync(100);
    loops.push(loop());
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(500);
    await Promise.all(loops);
    expect(new Set(polledAt).size).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('remove their timers and listeners when closed without affecting other loops', async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const waits = [nextPoll(60_000, one.signal), nextPoll(60_000, other.signal)];
    one.abort();
    await waits[0];
    expect(vi.getTimerCount()).toBe(1);
    expect(getEventListeners(one.signal, 'abort')).toEqual([]);
    other.abort();
    await waits[1];
    expect(vi.getTimerCount()).toBe(0);
    await nextPoll(60_000, one.signal);
  });
});
