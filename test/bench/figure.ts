import type { BenchStores } from './stores.ts';

/** One line of the table: our value, beside that of a peer or floor that did the same work in the same run. */
export interface Row {
  figure: string;
  case: string;
  unit: string;
  ours: number;
  /** The peer: `reference`, or `floor:` with what the floor leaves out. */
  beside: string;
  theirs: number;
  /** Our value divided by the peer's. */
  ratio: number;
  /** Bounds of the row. A row without one is reported but not judged. */
  bars?: readonly Bar[];
  /** Other observations: latencies, memory, wall time, parts of a sum. */
  also: string;
}

/** A promised bound: the most or the least that our value, or the ratio, may be. */
export interface Bar {
  of: 'ours' | 'ratio';
  bound: 'at most' | 'at least';
  must: number;
  /** The value that the design aims at. */
  aim?: number;
}

/** What a figure uses: running stores, and its own names in them. */
export interface Bench {
  readonly stores: BenchStores;
  /** Prefix of all topic names; new in each run. */
  readonly topicPrefix: string;
  /** Name of the ClickHouse database; new in each run. */
  readonly database: string;
  readonly environmentId: string;
  /** A publishable key. */
  readonly accessKey: string;
  readonly secretKey: string;
  /** Share of the rows and requests of a figure that fills a table. 1 for a real measurement, less for a trial. */
  readonly scale: number;
  /** Number of rows that `queries` fills in, if not the default. */
  readonly rows?: number;
  /** Settings of every process. */
  readonly environment: Readonly<Record<string, string>>;
  /** Settings of our own services. They use TLS and logins when the run has them. */
  readonly serviceEnvironment: Readonly<Record<string, string>>;
}

/** One measurement, in a file of its own. */
export interface Figure {
  readonly name: string;
  /** Runs only when it is named, because it needs what an ordinary run does not have. */
  readonly optional?: boolean;
  measure(bench: Bench): Promise<Row[]>;
}

/** Rounds to three significant digits, because more would be noise. */
export function toThreeDigits(value: number): number {
  return Number(value.toPrecision(3));
}

/** Creates a row and computes its ratio. */
export function toRow(row: Omit<Row, 'ratio'>): Row {
  const [ours, theirs] = [toThreeDigits(row.ours), toThreeDigits(row.theirs)];
  return { ...row, ours, theirs, ratio: toThreeDigits(row.ours / row.theirs) };
}

/** Whether a row meets a bar. NaN does not. */
export function isMet({ of, bound, must }: Bar, row: Row): boolean {
  return bound === 'at most' ? row[of] <= must : row[of] >= must;
}

/** True for rates, where more is better. For everything else (seconds, milliseconds, memory, parts) less is better. */
export function isMoreBetter(unit: string): boolean {
  return /per (CPU-)?second$/.test(unit);
}
