/** Compares the rows of a run with the kept run, and prints them as a table. */
import { toTable as formatTable } from '../measure.ts';
import { type Bar, isMet, isMoreBetter, type Row } from './figure.ts';

/** Ratios vary by about a tenth between runs. A quarter means that the code or the machine has changed. */
const WORSE_MAX = 0.25;

export interface FigureRow extends Row {
  figure: string;
}

export interface ComparedRow extends FigureRow {
  baselineRatio: number | null;
  isWorse: boolean;
}

const nameOf = ({ figure, case: what, unit, peer }: FigureRow) => `${figure}, ${what}, ${unit}, peer ${peer}`;

/** A row that only one of the two runs has does not count as a change. */
export function compareRows(rows: readonly FigureRow[], baseline: readonly FigureRow[]): ComparedRow[] {
  const ratios = new Map(baseline.map((row) => [nameOf(row), row.ratio]));
  return rows.map((row) => {
    const baselineRatio = ratios.get(nameOf(row)) ?? null;
    return { ...row, baselineRatio, isWorse: baselineRatio !== null && isWorseThan(row, baselineRatio) };
  });
}

function isWorseThan({ ratio, unit }: Row, baselineRatio: number): boolean {
  return isMoreBetter(unit) ? ratio < baselineRatio * (1 - WORSE_MAX) : ratio > baselineRatio * (1 + WORSE_MAX);
}

export const toWarnings = (rows: readonly ComparedRow[]): string[] =>
  rows
    .filter(({ isWorse }) => isWorse)
    .map(
      (row) => `worse than the baseline by more than a quarter: ${nameOf(row)}: ${row.baselineRatio} → ${row.ratio}`,
    );

/** The rows of a saved run. @throws Error when the text contains no run */
export function parseBaseline(text: string): FigureRow[] {
  const { rows } = JSON.parse(text) as { rows?: unknown };
  if (!Array.isArray(rows)) throw new Error('the baseline has no rows');
  return rows as FigureRow[];
}

const SIGNS = { 'at most': '≤', 'at least': '≥' } as const;

function describeBar(bar: Bar, row: ComparedRow): string {
  const aim = bar.aim === undefined ? '' : ` (aim ${bar.aim})`;
  return `${bar.of} ${SIGNS[bar.bound]} ${bar.must}${aim}: ${isMet(bar, row) ? 'met' : 'NOT MET'}`;
}

const COLUMNS: Record<string, (row: ComparedRow) => string | number> = {
  figure: (row) => row.figure,
  case: (row) => row.case,
  unit: (row) => row.unit,
  value: (row) => row.value,
  peer: (row) => row.peer,
  'peer value': (row) => row.peerValue,
  ratio: (row) => row.ratio,
  'baseline ratio': (row) => `${row.baselineRatio ?? ''}${row.isWorse ? ' (worse)' : ''}`,
  bars: (row) => (row.bars ?? []).map((bar) => describeBar(bar, row)).join('; '),
  notes: (row) => row.notes,
};

export const toTable = (rows: readonly ComparedRow[]): string => formatTable(COLUMNS, rows);
