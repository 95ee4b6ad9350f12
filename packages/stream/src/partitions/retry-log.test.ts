import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { captureLogs } from '../test/fake-log.ts';
import { RetryLog, RetryNotice } from './retry-log.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

function openLog() {
  const { logger, lines } = captureLogs();
  const log = new RetryLog(logger);
  const fail = (partition: number, reason: string) =>
    log.report({ topic: 'topic', partition, level: 'warn', error: new Error(reason), fields: { start: 3 } }, 'failed');
  return { lines, fail };
}

it('the retry log writes one line per reason and repeats it with counts at growing intervals', () => {
  const { lines, fail } = openLog();
  for (let attempt = 0; attempt < 120; attempt++) fail(attempt % 6, `refused, attempt ${attempt}`);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: 'warn', topic: 'topic', partition: 0, start: 3, attempts: 1, partitions: 1 });
  expect(lines[0]).toMatchObject({ reason: 'refused, attempt 0', msg: 'failed' });
  expect(JSON.stringify(lines)).not.toContain('stack');
  vi.advanceTimersByTime(1_000);
  fail(2, 'refused, attempt 120');
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatchObject({ attempts: 121, partitions: 6, forSeconds: 1 });
});

it('the retry log immediately reports a new reason, and a reason that recurs after a minute', () => {
  const { lines, fail } = openLog();
  for (const reason of ['refused', 'refused', 'busy']) fail(0, reason);
  vi.advanceTimersByTime(60_000);
  fail(0, 'refused');
  expect(lines.map(({ reason, attempts }) => [reason, attempts])).toEqual([
    ['refused', 1],
    ['busy', 1],
    ['refused', 1],
  ]);
});

it('a retry notice is due for the first failed attempt, then at growing intervals of up to ten minutes', () => {
  const notice = new RetryNotice();
  const dueAt: number[] = [];
  for (let second = 0; second < 86_400; second += 5) {
    const due = notice.next();
    if (due !== null) {
      dueAt.push(second);
      expect(due).toEqual({ attempts: second / 5 + 1, forSeconds: second });
    }
    vi.advanceTimersByTime(5_000);
  }
  expect(dueAt.slice(0, 6)).toEqual([0, 5, 10, 15, 25, 45]);
  const intervals = dueAt.slice(1).map((second, index) => second - dueAt[index]!);
  expect(Math.max(...intervals)).toBe(600);
  expect(dueAt.length).toBeLessThan(160);
});
