import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DEADLINE_STEP_MS, Deadlines } from './deadlines.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

it('a deadline expires once, at most one step after it is due', () => {
  const reported = vi.fn();
  new Deadlines().add(1_000, reported);
  vi.advanceTimersByTime(999);
  expect(reported).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1 + DEADLINE_STEP_MS);
  expect(reported).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(10_000);
  expect(reported).toHaveBeenCalledTimes(1);
});

it('a cancelled deadline never expires, even if it is cancelled by a deadline that expires in the same step', () => {
  const deadlines = new Deadlines();
  const reported = vi.fn();
  const first = deadlines.add(100, reported);
  deadlines.add(100, () => second.cancel());
  const second = deadlines.add(100, reported);
  first.cancel();
  vi.advanceTimersByTime(1_000);
  expect(reported).not.toHaveBeenCalled();
});

it('deadlines expire in order of their due times, including deadlines added during an expiry', () => {
  const deadlines = new Deadlines();
  const reported: string[] = [];
  deadlines.add(500, () => reported.push('long'));
  deadlines.add(100, () => {
    reported.push('short');
    deadlines.add(100, () => reported.push('later'));
  });
  vi.advanceTimersByTime(1_000);
  expect(reported).toEqual(['short', 'later', 'long']);
});

it('the timer stops when no deadline is pending, so that the process can exit', () => {
  const deadlines = new Deadlines();
  deadlines.add(60_000, () => {}).cancel();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(DEADLINE_STEP_MS);
  expect(vi.getTimerCount()).toBe(0);
});
