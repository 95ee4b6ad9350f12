import { EXIT, type ExitCode, type Terminal } from '../../services/operator/src/command.ts';
import type { Run } from './run.ts';

export interface Differences<K extends string> {
  add(kind: K, text: string): void;
  readonly total: number;
  byKind(): KindOfDifference<K>[];
}

export interface KindOfDifference<K extends string> {
  readonly kind: K;
  readonly count: number;
  readonly first: readonly string[];
}

const FIRST_MAX = 20;

export function createDifferences<K extends string>(): Differences<K> {
  const kinds = new Map<K, { count: number; first: string[] }>();
  return {
    get total() {
      return [...kinds.values()].reduce((sum, { count }) => sum + count, 0);
    },
    add: (kind, text) => {
      const entry = kinds.get(kind) ?? { count: 0, first: [] };
      entry.count++;
      if (entry.first.length < FIRST_MAX) entry.first.push(text);
      kinds.set(kind, entry);
    },
    byKind: () => [...kinds].map(([kind, entry]) => ({ kind, ...entry })),
  };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const show = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));

/** Describes the differences between two JSON values, with paths: `details.amount: "5" instead of "6"`. */
export function describeDifferences(expected: unknown, shown: unknown, path = ''): string[] {
  const isPair = isObject(expected) && isObject(shown) && Array.isArray(expected) === Array.isArray(shown);
  if (!isPair) return Object.is(expected, shown) ? [] : [`${path}: ${show(shown)} instead of ${show(expected)}`];
  const names = new Set([...Object.keys(expected), ...Object.keys(shown)]);
  return [...names].flatMap((name) =>
    describeDifferences(expected[name], shown[name], path === '' ? name : `${path}.${name}`),
  );
}

export function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

export interface Latency {
  add(ms: number): void;
  /** @returns the upper bound of the bucket that contains the quantile; 0 if the histogram is empty */
  quantileMs(quantile: number): number;
}

/** Each bucket is 2^(1/8) times the previous bucket, for an error of at most 9 %. 200 buckets cover nine hours. */
const BUCKETS = 200;
const BUCKETS_PER_DOUBLING = 8;

export function createLatency(): Latency {
  const buckets = new Uint32Array(BUCKETS);
  let total = 0;
  return {
    add: (ms) => {
      const bucket = Math.ceil(Math.log2(Math.max(1, ms)) * BUCKETS_PER_DOUBLING);
      buckets[Math.min(BUCKETS - 1, bucket)]!++;
      total++;
    },
    quantileMs: (quantile) => {
      let seen = 0;
      for (let bucket = 0; bucket < BUCKETS; bucket++) {
        seen += buckets[bucket]!;
        if (total > 0 && seen >= quantile * total) return 2 ** (bucket / BUCKETS_PER_DOUBLING);
      }
      return 0;
    },
  };
}

export const round = (value: number): number => Math.round(value * 10) / 10;

export const quantilesOf = (latency: Latency, unitMs = 1): { p50: number; p99: number } => ({
  p50: round(latency.quantileMs(0.5) / unitMs),
  p99: round(latency.quantileMs(0.99) / unitMs),
});

export interface RunReport {
  readonly run: Run;
  readonly chain?: string;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly success: string;
  readonly differences: readonly KindOfDifference<string>[];
}

const NAME_WIDTH = 24;

function describeFact(value: unknown): string {
  if (Array.isArray(value)) return value.map(describeFact).join('; ');
  if (!isObject(value)) return String(value);
  const members = Object.entries(value).map(([name, member]) =>
    isObject(member) ? `${name} (${describeFact(member)})` : `${name} ${member}`,
  );
  return members.join(', ') || 'none';
}

export function toLines({ run, chain, facts, success, differences }: RunReport): string[] {
  const head = { run: run.tag, seed: run.seed, ...(chain === undefined ? {} : { chain }) };
  const lines = Object.entries({ ...head, ...facts }).map(
    ([name, fact]) => `${name.padEnd(NAME_WIDTH)}${describeFact(fact)}`,
  );
  const found = differences.flatMap(({ kind, count: total, first }) => [
    `DIFFERENT ${kind}: ${total}`,
    ...first.map((text) => `  ${text}`),
  ]);
  return [...lines, ...found, differences.length === 0 ? success : 'The run FAILED.'];
}

export function toJson({ run, chain, facts, differences }: RunReport): Record<string, unknown> {
  const name = chain === undefined ? {} : { chain };
  return { ok: differences.length === 0, run: run.tag, seed: run.seed, ...name, ...facts, differences };
}

/** Prints the report, as one line of JSON with `--json`. @returns the exit code */
export function printReport(
  report: RunReport,
  { json }: { readonly json?: boolean | undefined },
  terminal: Terminal,
): ExitCode {
  for (const line of json === true ? [JSON.stringify(toJson(report))] : toLines(report)) terminal.result(line);
  return report.differences.length === 0 ? EXIT.ok : EXIT.failed;
}
