import { expect, it } from 'vitest';
import { addFailure, addSeed, BrokenPromise, createRow, hasFailed, toTable, toWarning } from './report.ts';

const counts = { sent: 10, acknowledged: 9, published: 12, rows: 11 };
const createTried = () => createRow({ fault: 2, tried: 'a kill' }, 3);

it('counts a seed as done only when every part of its fault took effect', () => {
  const row = createTried();
  addSeed(row, 1, { ...counts, reached: { kills: 1, 'answers cut off': 0, 'away s': 2 } });
  addSeed(row, 2, { ...counts, reached: { 'away s': 2 } });
  expect(row).toMatchObject({ done: 0, sent: 0, notReached: [{ seed: 1 }, { seed: 2 }], failures: [] });
  expect(hasFailed(row)).toBe(true);
  addSeed(row, 3, { ...counts, reached: { kills: 1, 'answers cut off': 4, 'away s': 0 } });
  expect(row).toMatchObject({ done: 1, ...counts });
  expect(hasFailed(row)).toBe(false);
});

it('adds up counts, keeps the greatest of durations, and names the seeds that are not done', () => {
  const row = createTried();
  addSeed(row, 1, { ...counts, reached: { kills: 1, 'away s': 2.5 } });
  addSeed(row, 2, { ...counts, reached: { kills: 2, 'away s': 1, 'answers lost': 3 } });
  addFailure(row, 3, new Error('fault 2', { cause: new BrokenPromise('lost', { lost: 5, doubled: 1 }) }));
  expect(toTable([row]).split('\n')[2]?.replace(/ +/g, ' ')).toBe(
    '| 2 | a kill | 2/3 | 3 kills; away up to 2.5 s; 3 answers lost | 20 | 18 | 24 | 22 | 5 | 1 | 0 | 1 (seeds 3) |',
  );
  expect(hasFailed(row)).toBe(true);
});

it('warns when some seeds were never started', () => {
  const [row, untried] = [createTried(), createTried()];
  for (const seed of [1, 2]) addSeed(row, seed, { ...counts, reached: { kills: 1 } });
  expect(toWarning([row, untried], 5)).toMatch(/5 cut this run short: 2 of 6 seeds were begun; 1 of 2 lines/);
  addFailure(row, 3, new Error('no'));
  expect(toWarning([row], 5)).toBe(null);
});
