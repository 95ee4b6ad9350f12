import type { BenchStores } from './stores.ts';

/** A row of the table: a value of the product next to that of a peer that did the same work in the same run. */
export interface Row {
  case: string;
  unit: string;
  value: number;
  /** `reference`, or `floor:` with what the floor leaves out. */
  peer: string;
  peerValue: number;
  /** `value` divided by `peerValue`. */
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
  /** Share of the rows and requests of a figure that fills a table: 1 for a real measurement. */
  readonly scale: number;
  /** Number of rows that `queries` fills in, if not the default. */
  readonly rows?: number;
  readonly environment: Readonly<Record<string, string>>;
  /** Settings of the product's services, with TLS and logins when the run has them. */
  readonly serviceEnvironment: Readonly<Record<string, string>>;
}

/** Rows, people or requests by their number. */
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

/** Three significant digits, because more would be noise. */
const round = (value: number) => Number(value.toPrecision(3));

/** Rounds the values and computes the ratio. */
export function toRow({ notes = '', ...row }: Omit<Row, 'ratio' | 'notes'> & { notes?: string }): Row {
  const [value, peerValue] = [round(row.value), round(row.peerValue)];
  return { ...row, value, peerValue, ratio: round(row.value / row.peerValue), notes };
}

/** Whether a row meets a bar. NaN does not. */
export function isMet({ of, bound, must }: Bar, row: Row): boolean {
  return bound === 'at most' ? row[of] <= must : row[of] >= must;
}

/** True for rates. For everything else (seconds, memory, parts) less is better. */
export const isMoreBetter = (unit: string): boolean => /per (CPU-)?second$/.test(unit);

/** A count multiplied by the scale of the run, but at least `min`. */
export const scaled = ({ scale }: Pick<Bench, 'scale'>, count: number, min = 1): number =>
  Math.max(min, Math.round(count * scale));
