import { isMoreBetter, type Row } from './figure.ts';

/**
 * Ratios of CPU or rates vary by about a tenth between runs. A quarter means that the code or the machine has changed.
 */
const WORSE_MAX = 0.25;

/** A row with the same row of the baseline. */
export interface ComparedRow extends Row {
  /** The ratio in the baseline; null when the baseline has no such row. */
  baselineRatio: number | null;
  /** True when the ratio is worse than that of the baseline by more than a quarter. */
  isWorse: boolean;
}

const nameOf = ({ figure, case: what, unit, beside }: Row) => `${figure}, ${what}, ${unit}, beside ${beside}`;

/** Compares rows with those of a baseline. A row that only one of the two has does not count as a change. */
export function compareRows(rows: readonly Row[], kept: readonly Row[]): ComparedRow[] {
  const ratios = new Map(kept.map((row) => [nameOf(row), row.ratio]));
  return rows.map((row) => {
    const baselineRatio = ratios.get(nameOf(row)) ?? null;
    return { ...row, baselineRatio, isWorse: baselineRatio !== null && isWorseThan(row, baselineRatio) };
  });
}

function isWorseThan({ ratio, unit }: Row, kept: number): boolean {
  return isMoreBetter(unit) ? ratio < kept * (1 - WORSE_MAX) : ratio > kept * (1 + WORSE_MAX);
}

/** One line for each row that became worse. */
export function toWarnings(rows: readonly ComparedRow[]): string[] {
  return rows
    .filter(({ isWorse }) => isWorse)
    .map(
      (row) => `worse than the baseline by more than a quarter: ${nameOf(row)}: ${row.baselineRatio} → ${row.ratio}`,
    );
}

/** The rows of a saved run. @throws Error when the text contains no run */
export function parseBaseline(text: string): Row[] {
  const kept: unknown = JSON.parse(text);
  if (typeof kept !== 'object' || kept === null || !('rows' in kept) || !Array.isArray(kept.rows))
    throw new Error('the baseline has no rows');
  return kept.rows as Row[];
}
