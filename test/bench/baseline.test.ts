import { expect, it } from 'vitest';
import { compareRows, parseBaseline, toWarnings } from './baseline.ts';
import { type Row, toRow } from './figure.ts';
import { toTable } from './table.ts';

const RATE = 'rows per CPU-second';
const COST = 'CPU-seconds per million rows';
const rowOf = (unit: string, ratio: number, more: Partial<Row> = {}): Row => ({
  ...toRow({ figure: 'writer', case: 'all', unit, ours: ratio, beside: 'floor', theirs: 1, also: '' }),
  ...more,
});
const compareOne = (unit: string, kept: number, now: number) =>
  compareRows([rowOf(unit, now)], [rowOf(unit, kept)])[0]?.isWorse;

it('calls a rate worse when its ratio fell by more than a quarter', () => {
  expect(compareOne(RATE, 1, 0.74)).toBe(true);
  expect(compareOne(RATE, 1, 0.75)).toBe(false);
  expect(compareOne(RATE, 1, 4)).toBe(false);
});

it('calls a cost worse when its ratio rose by more than a quarter', () => {
  expect(compareOne(COST, 1, 1.26)).toBe(true);
  expect(compareOne(COST, 1, 1.25)).toBe(false);
  expect(compareOne(COST, 1, 0.2)).toBe(false);
});

it.each(['p99 ms', 'peak MiB', 'parts a second', 'seconds', COST])('treats less as better for %s', (unit) => {
  expect(compareOne(unit, 1, 2)).toBe(true);
});

it.each(['events per CPU-second', 'links per second'])('treats more as better for %s', (unit) => {
  expect(compareOne(unit, 1, 2)).toBe(false);
});

it('compares a row only with one of the same figure, case, unit and peer', () => {
  const now = rowOf(RATE, 0.1);
  const others = [{ figure: 'linker' }, { case: 'some' }, { unit: COST }, { beside: 'reference' }];
  const kept = others.map((other) => rowOf(RATE, 1, other));
  expect(compareRows([now], kept)).toEqual([{ ...now, baselineRatio: null, isWorse: false }]);
});

it('does not call a row worse when it has no ratio', () => {
  expect(compareOne(RATE, 1, Number.NaN)).toBe(false);
});

it('warns about each row that became worse, with both ratios', () => {
  const compared = compareRows([rowOf(RATE, 0.5), rowOf(COST, 1)], [rowOf(RATE, 1), rowOf(COST, 1)]);
  expect(toWarnings(compared)).toEqual([
    'worse than the baseline by more than a quarter: writer, all, rows per CPU-second, beside floor: 1 → 0.5',
  ]);
});

it('refuses a baseline without rows', () => {
  expect(() => parseBaseline('{"machine":{}}')).toThrow('no rows');
});

it('reports for each bar whether it is met, and counts a value that is not a number as not met', () => {
  const bars = [
    { of: 'ours', bound: 'at most', must: 50, aim: 40 },
    { of: 'ratio', bound: 'at least', must: 2 },
  ] as const;
  const table = (ours: number) =>
    toTable(compareRows([{ ...rowOf(COST, 1), ours, ratio: ours / 100, bars: [...bars] }], []));
  expect(table(50)).toContain('ours ≤ 50 (aim 40): met; ratio ≥ 2: NOT MET');
  expect(table(200)).toContain('ours ≤ 50 (aim 40): NOT MET; ratio ≥ 2: met');
  expect(table(Number.NaN)).toContain('ours ≤ 50 (aim 40): NOT MET');
});
