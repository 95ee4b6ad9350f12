import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DEADLINE_STEP_MS, Deadlines } from './deadlines.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

it('a deadline is told once, not before it is due, and at most a step after it', () => {
  const told = vi.fn();
  new Deadlines().add(1_000, told);
  vi.advanceTimersByTime(999);
  expect(told).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1 + DEADLINE_STEP_MS);
  expect(told).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(10_000);
  expect(told).toHaveBeenCalledTimes(1);
});

it('a deadline is never told once it is cancelled, also by another that is told in the same step', () => {
  const deadlines = new Deadlines();
  const told = vi.fn();
  const first = deadlines.add(100, told);
  deadlines.add(100, () => second.cancel());
  const second = deadlines.add(100, told);
  first.cancel();
  vi.advanceTimersByTime(1_000);
  expect(told).not.toHaveBeenCalled();
});

it('a deadline is told when it was added while others were told, and whatever the order of their lengths', () => {
  const deadlines = new Deadlines();
  const told: string[] = [];
  deadlines.add(500, () => told.push('long'));
  deadlines.add(100, () => {
    told.push('short');
    deadlines.add(100, () => told.push('later'));
  });
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual(['short', 'later', 'long']);
});

it('a deadline leaves no timer behind, so that a process can end, once none is open', () => {
  const deadlines = new Deadlines();
  deadlines.add(60_000, () => {}).cancel();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(DEADLINE_STEP_MS);
  expect(vi.getTimerCount()).toBe(0);
});
