import type { BenchStores } from './stores.ts';

/** One line of the table: a figure of ours beside a peer or a floor that did the same work in the same run. */
export interface Row {
  figure: string;
  case: string;
  unit: string;
  ours: number;
  /** What stands beside it: `reference`, or `floor:` and what the floor leaves out. */
  beside: string;
  theirs: number;
  /** Ours divided by theirs. */
  ratio: number;
  /** Anything else that was seen: latencies, memory, wall time. */
  also: string;
}

/** What a figure may use: stores that run, and names that are its own. */
export interface Bench {
  readonly stores: BenchStores;
  /** Put before every topic name; new in each run. */
  readonly topicPrefix: string;
  /** Database of ClickHouse; new in each run. */
  readonly database: string;
  readonly environmentId: string;
  readonly accessKey: string;
  /** Settings that every service takes from its environment. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Measures one thing; one file each. */
export interface Figure {
  readonly name: string;
  measure(bench: Bench): Promise<Row[]>;
}

/** Three significant digits: more would be noise. */
export function toThreeDigits(value: number): number {
  return Number(value.toPrecision(3));
}

/** Makes a row and its ratio. */
export function toRow(row: Omit<Row, 'ratio'>): Row {
  const [ours, theirs] = [toThreeDigits(row.ours), toThreeDigits(row.theirs)];
  return { ...row, ours, theirs, ratio: toThreeDigits(row.ours / row.theirs) };
}

/** Rows as a table of text, columns as wide as their widest cell. */
export function toTable(rows: readonly Row[]): string {
  const head = ['figure', 'case', 'unit', 'ours', 'beside', 'theirs', 'ratio', 'also'] as const;
  const lines = [[...head], ...rows.map((row) => head.map((name) => String(row[name])))];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
