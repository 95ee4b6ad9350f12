import { expect, it } from 'vitest';
import { addFailure, addSeed, BrokenGuarantee, createRow, hasFailed, toTable, toWarning } from './report.ts';

const counts = { sent: 10, acknowledged: 9, published: 12, rows: 11 };
const createTestRow = () => createRow({ fault: 2, tried: 'a kill' }, 3);

it('addSeed counts a seed as done only if every part of the fault took effect', () => {
  const row = createTestRow();
  addSeed(row, 1, { ...counts, effects: { kills: 1, 'responses interrupted': 0, 'outage s': 2 } });
  addSeed(row, 2, { ...counts, effects: { 'outage s': 2 } });
  expect(row).toMatchObject({ done: 0, sent: 0, withoutEffect: [{ seed: 1 }, { seed: 2 }], failures: [] });
  expect(hasFailed(row)).toBe(true);
  addSeed(row, 3, { ...counts, effects: { kills: 1, 'responses interrupted': 4, 'outage s': 0 } });
  expect(row).toMatchObject({ done: 1, ...counts });
  expect(hasFailed(row)).toBe(false);
});

it('a row of the report contains sums of counts, maximum durations and the failed seeds', () => {
  const row = createTestRow();
  addSeed(row, 1, { ...counts, effects: { kills: 1, 'outage s': 2.5 } });
  addSeed(row, 2, { ...counts, effects: { kills: 2, 'outage s': 1, 'responses lost': 3 } });
  addFailure(row, 3, new Error('fault 2', { cause: new BrokenGuarantee('lost', { lost: 5, duplicated: 1 }) }));
  expect(toTable([row]).split('\n')[2]?.replace(/ +/g, ' ')).toBe(
    '| 2 | a kill | 2/3 | 3 kills; outage up to 2.5 s; 3 responses lost | 20 | 18 | 24 | 22 | 5 | 1 | 0 | 1 (seeds 3) |',
  );
  expect(hasFailed(row)).toBe(true);
});

it('toWarning warns if seeds were not started', () => {
  const [row, notStarted] = [createTestRow(), createTestRow()];
  for (const seed of [1, 2]) addSeed(row, seed, { ...counts, effects: { kills: 1 } });
  expect(toWarning([row, notStarted], 5)).toMatch(/5 cut this run short: 2 of 6 seeds were started; 1 of 2 faults/);
  addFailure(row, 3, new Error('no'));
  expect(toWarning([row], 5)).toBe(null);
});
