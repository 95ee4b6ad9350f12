import { expect, it } from 'vitest';
import { atLeast, atMost, compareRows, type FigureRow, parseBaseline, toRow, toTable, toWarnings } from './figure.ts';

const RATE = 'rows per CPU-second';
const COST = 'CPU-seconds per million rows';
const rowOf = (unit: string, ratio: number, fields: Partial<FigureRow> = {}): FigureRow => ({
  figure: 'writer',
  ...toRow({ case: 'all', unit, value: ratio, peer: 'floor', peerValue: 1 }),
  ...fields,
});

it.each([
  [RATE, 0.74, true],
  [RATE, 0.75, false],
  [RATE, 4, false],
  ['links per second', 2, false],
  [COST, 1.26, true],
  [COST, 1.25, false],
  [COST, 0.2, false],
  ['p99 ms', 2, true],
  ['peak MiB', 2, true],
  [RATE, Number.NaN, false],
])('when the ratio of %s changes from 1 to %d, compareRows sets isWorse to %s', (unit, ratio, isWorse) => {
  expect(compareRows([rowOf(unit, ratio)], [rowOf(unit, 1)])[0]?.isWorse).toBe(isWorse);
});

it('compareRows compares rows only if figure, case, unit and peer are equal', () => {
  const row = rowOf(RATE, 0.1);
  const changes = [{ figure: 'linker' }, { case: 'some' }, { unit: COST }, { peer: 'reference' }];
  const baseline = changes.map((change) => rowOf(RATE, 1, change));
  expect(compareRows([row], baseline)).toEqual([{ ...row, baselineRatio: null, isWorse: false }]);
});

it('toWarnings lists each row that is worse than the baseline, with both ratios', () => {
  const compared = compareRows([rowOf(RATE, 0.5), rowOf(COST, 1)], [rowOf(RATE, 1), rowOf(COST, 1)]);
  expect(toWarnings(compared)).toEqual([
    'worse than the baseline by more than a quarter: writer, all, rows per CPU-second, peer floor: 1 → 0.5',
  ]);
});

it('parseBaseline rejects a baseline without rows', () => {
  expect(() => parseBaseline('{"machine":{}}')).toThrow('no rows');
});

it('the table shows for each bar whether the value meets it, and NaN meets no bar', () => {
  const bars = [atMost('value', 50, 40), atLeast('ratio', 2)];
  const table = (value: number) => toTable(compareRows([{ ...rowOf(COST, 1), value, ratio: value / 100, bars }], []));
  expect(table(50)).toContain('value ≤ 50 (aim 40): met; ratio ≥ 2: NOT MET');
  expect(table(Number.NaN)).toContain('value ≤ 50 (aim 40): NOT MET');
});
