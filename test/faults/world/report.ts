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
  lost: number;
  doubled: number;
  readonly failures: { seed: number; words: string }[];
}

/** What must never be: what was acknowledged and is not stored, and what is stored twice. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
  readonly lost: number;
  readonly doubled: number;
  constructor(words: string, counts: { lost: number; doubled: number }) {
    super(words);
    this.lost = counts.lost;
    this.doubled = counts.doubled;
  }
}

/** A row before the first seed. */
export function createRow({ fault, tried }: Pick<Row, 'fault' | 'tried'>): Row {
  const counts = { seeds: 0, sent: 0, acknowledged: 0, published: 0, rows: 0, lost: 0, doubled: 0 };
  return { fault, tried, ...counts, failures: [] };
}

/** Notes that a seed did not end as promised, and what was lost or doubled, where that was counted. */
export function addFailure(row: Row, seed: number, error: unknown): void {
  row.failures.push({ seed, words: error instanceof Error ? error.message : String(error) });
  const broken = error instanceof Error && error.cause instanceof BrokenPromise ? error.cause : error;
  if (!(broken instanceof BrokenPromise)) return;
  row.lost += broken.lost;
  row.doubled += broken.doubled;
}

const COLUMNS: readonly [string, (row: Row) => string | number][] = [
  ['fault', ({ fault }) => fault],
  ['what was tried', ({ tried }) => tried],
  ['seeds', ({ seeds }) => seeds],
  ['sent', ({ sent }) => sent],
  ['acknowledged', ({ acknowledged }) => acknowledged],
  ['records', ({ published }) => published],
  ['rows', ({ rows }) => rows],
  ['lost', ({ lost }) => lost],
  ['doubled', ({ doubled }) => doubled],
  ['failed', ({ failures }) => failures.length],
  ['failed seeds', ({ failures }) => failures.map(({ seed }) => seed).join(' ')],
];

/** A table in Markdown. */
export function toTable(rows: readonly Row[]): string {
  const lines = [COLUMNS.map(([name]) => name), COLUMNS.map(() => '---')];
  for (const row of rows) lines.push(COLUMNS.map(([, read]) => String(read(row))));
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
