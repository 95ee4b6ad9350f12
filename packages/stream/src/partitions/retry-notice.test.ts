import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RetryNotice } from './retry-notice.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

it('tells the first of many failed attempts at once and the others ever more seldom, but never stops', () => {
  const notice = new RetryNotice();
  const told: number[] = [];
  // A day of attempts, one in five seconds.
  for (let second = 0; second < 86_400; second += 5) {
    const due = notice.next();
    if (due !== null) {
      told.push(second);
      expect(due).toEqual({ attempts: second / 5 + 1, forSeconds: second });
    }
    vi.advanceTimersByTime(5_000);
  }
  expect(told.slice(0, 6)).toEqual([0, 5, 10, 15, 25, 45]);
  const distances = told.slice(1).map((second, index) => second - told[index]!);
  expect(Math.max(...distances)).toBe(600);
  expect(told.length).toBeLessThan(160);
});
