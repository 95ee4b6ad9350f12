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
  /** Bound of the figure; a figure without one is reported and not judged. */
  bars?: readonly Bar[];
  /** Anything else that was seen: latencies, memory, wall time, the parts of a sum. */
  also: string;
}

/** A promise about a figure: the most or the least that our value, or its ratio, may be. */
export interface Bar {
  of: 'ours' | 'ratio';
  bound: 'at most' | 'at least';
  must: number;
  /** What it is built to reach. */
  aim?: number;
}

/** What a figure may use: stores that run, and names that are its own. */
export interface Bench {
  readonly stores: BenchStores;
  /** Put before every topic name; new in each run. */
  readonly topicPrefix: string;
  /** Database of ClickHouse; new in each run. */
  readonly database: string;
  readonly environmentId: string;
  /** A publishable key. */
  readonly accessKey: string;
  readonly secretKey: string;
  /** Share of its rows and requests with which a figure that fills a table is taken, to try it; 1 for a figure that counts. */
  readonly scale: number;
  /** Rows that `queries` fills in, where the number differs from the usual one. */
  readonly rows?: number;
  /** Settings that every service takes from its environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** The same for our own services under measurement: by TLS and with logins where the run has them. */
  readonly serviceEnvironment: Readonly<Record<string, string>>;
}

/** Measures one thing; one file each. */
export interface Figure {
  readonly name: string;
  /** Taken only when it is named: it needs what an ordinary run does not have. */
  readonly optional?: boolean;
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

/** Whether a value of a row keeps to a bar; a figure that is not a number does not. */
export function isMet({ of, bound, must }: Bar, row: Row): boolean {
  return bound === 'at most' ? row[of] <= must : row[of] >= must;
}

/** Of rates more is better, of everything else (seconds, milliseconds, memory, parts) less. */
export function isMoreBetter(unit: string): boolean {
  return /per (CPU-)?second$/.test(unit);
}
