import { toTable as formatTable } from '../measure.ts';
import type { ComparedRow } from './baseline.ts';
import { type Bar, isMet } from './figure.ts';

const SIGNS = { 'at most': '≤', 'at least': '≥' } as const;

function describeBar(bar: Bar, row: ComparedRow): string {
  const aim = bar.aim === undefined ? '' : ` (aim ${bar.aim})`;
  return `${bar.of} ${SIGNS[bar.bound]} ${bar.must}${aim}: ${isMet(bar, row) ? 'met' : 'NOT MET'}`;
}

const COLUMNS: Record<string, (row: ComparedRow) => string> = {
  figure: (row) => row.figure,
  case: (row) => row.case,
  unit: (row) => row.unit,
  ours: (row) => String(row.ours),
  beside: (row) => row.beside,
  theirs: (row) => String(row.theirs),
  ratio: (row) => String(row.ratio),
  'baseline ratio': (row) => `${row.baselineRatio ?? ''}${row.isWorse ? ' (worse)' : ''}`,
  must: (row) => (row.bars ?? []).map((bar) => describeBar(bar, row)).join('; '),
  also: (row) => row.also,
};

export const toTable = (rows: readonly ComparedRow[]): string => formatTable(COLUMNS, rows);
