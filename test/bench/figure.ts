/** Compares the rows of a run with the baseline, and prints them as a table. */

import { toTable as formatTable } from '../measure.ts';
import type { BenchStores } from './stores.ts';

export interface Row {
  case: string;
  unit: string;
  value: number;
  /** `reference`, or `floor:` followed by a description of the floor. */
  peer: string;
  peerValue: number;
  ratio: number;
  bars?: readonly Bar[];
  notes: string;
}

export interface Bar {
  of: 'value' | 'ratio';
  bound: 'at most' | 'at least';
  must: number;
  aim?: number;
}

export interface Bench {
  readonly stores: BenchStores;
  readonly topicPrefix: string;
  readonly database: string;
  readonly environmentId: string;
  readonly publishableKey: string;
  readonly secretKey: string;
  /** Fraction of rows and requests to use in figures that fill a table; 1 for a real measurement. */
  readonly scale: number;
  readonly rows?: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly serviceEnvironment: Readonly<Record<string, string>>;
}

export interface Range {
  readonly first: number;
  readonly count: number;
}

export interface Figure {
  readonly name: string;
  readonly optional?: boolean;
  measure(bench: Bench): Promise<Row[]>;
}

export const atMost = (of: Bar['of'], must: number, aim?: number): Bar => ({ of, bound: 'at most', must, aim });
export const atLeast = (of: Bar['of'], must: number, aim?: number): Bar => ({ of, bound: 'at least', must, aim });

/** Rounds to three significant digits, because more would be noise. */
const round = (value: number) => Number(value.toPrecision(3));

export function toRow({ notes = '', ...row }: Omit<Row, 'ratio' | 'notes'> & { notes?: string }): Row {
  const [value, peerValue] = [round(row.value), round(row.peerValue)];
  return { ...row, value, peerValue, ratio: round(row.value / row.peerValue), notes };
}

function isMet({ of, bound, must }: Bar, row: Row): boolean {
  return bound === 'at most' ? row[of] <= must : row[of] >= must;
}

/** True for rates. For all other units (seconds, memory, parts), lower is better. */
const isHigherBetter = (unit: string): boolean => /per (CPU-)?second$/.test(unit);

export const scaled = ({ scale }: Pick<Bench, 'scale'>, count: number, min = 1): number =>
  Math.max(min, Math.round(count * scale));

/** Ratios vary by about 10 % between runs. A larger change than this means that the code or the machine has changed. */
const WORSE_MAX = 0.25;

export interface FigureRow extends Row {
  figure: string;
}

interface ComparedRow extends FigureRow {
  baselineRatio: number | null;
  isWorse: boolean;
}

const nameOf = ({ figure, case: what, unit, peer }: FigureRow) => `${figure}, ${what}, ${unit}, peer ${peer}`;

/** Adds the baseline ratio to each row; null if the baseline does not contain the row. */
export function compareRows(rows: readonly FigureRow[], baseline: readonly FigureRow[]): ComparedRow[] {
  const ratios = new Map(baseline.map((row) => [nameOf(row), row.ratio]));
  return rows.map((row) => {
    const baselineRatio = ratios.get(nameOf(row)) ?? null;
    return { ...row, baselineRatio, isWorse: baselineRatio !== null && isWorseThan(row, baselineRatio) };
  });
}

function isWorseThan({ ratio, unit }: Row, baselineRatio: number): boolean {
  return isHigherBetter(unit) ? ratio < baselineRatio * (1 - WORSE_MAX) : ratio > baselineRatio * (1 + WORSE_MAX);
}

export const toWarnings = (rows: readonly ComparedRow[]): string[] =>
  rows
    .filter(({ isWorse }) => isWorse)
    .map(
      (row) => `worse than the baseline by more than a quarter: ${nameOf(row)}: ${row.baselineRatio} → ${row.ratio}`,
    );

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
