/** What was found with one fault. */
export interface Row {
  readonly fault: number;
  readonly tried: string;
  /** Seeds that ended as promised. */
  seeds: number;
  sent: number;
  acknowledged: number;
  published: number;
  rows: number;
  readonly failures: { seed: number; words: string }[];
}

const COLUMNS: readonly [string, (row: Row) => string | number][] = [
  ['fault', ({ fault }) => fault],
  ['what was tried', ({ tried }) => tried],
  ['seeds', ({ seeds }) => seeds],
  ['sent', ({ sent }) => sent],
  ['acknowledged', ({ acknowledged }) => acknowledged],
  ['records', ({ published }) => published],
  ['rows', ({ rows }) => rows],
  // A seed with a message lost or doubled is a failed seed; what it lost stands in its words.
  ['failed', ({ failures }) => failures.length],
  ['failed seeds', ({ failures }) => failures.map(({ seed }) => seed).join(' ')],
];

/** A table in Markdown. */
export function toTable(rows: readonly Row[]): string {
  const lines = [COLUMNS.map(([name]) => name), COLUMNS.map(() => '---')];
  for (const row of rows) lines.push(COLUMNS.map(([, read]) => String(read(row))));
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
