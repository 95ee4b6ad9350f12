import { EXIT, type ExitCode, type Terminal } from '../../services/operator/src/command.ts';
import type { Run } from './run.ts';

/** Collects differences: counts all of them, and keeps the first texts of each kind. */
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

/** Enough to see a pattern, few enough to read. */
const KEPT_MAX = 20;

export function createDifferences<K extends string>(): Differences<K> {
  const kinds = new Map<K, { count: number; first: string[] }>();
  return {
    get total() {
      return [...kinds.values()].reduce((sum, { count }) => sum + count, 0);
    },
    add: (kind, text) => {
      const entry = kinds.get(kind) ?? { count: 0, first: [] };
      entry.count++;
      if (entry.first.length < KEPT_MAX) entry.first.push(text);
      kinds.set(kind, entry);
    },
    byKind: () => [...kinds].map(([kind, entry]) => ({ kind, ...entry })),
  };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const show = (value: unknown) => (value === undefined ? 'nothing' : JSON.stringify(value));

/** Differences between two JSON values by member: `details.amount: "5" instead of "6"`. */
export function describeDifferences(expected: unknown, shown: unknown, path = ''): string[] {
  const isPair = isObject(expected) && isObject(shown) && Array.isArray(expected) === Array.isArray(shown);
  if (!isPair) return Object.is(expected, shown) ? [] : [`${path}: ${show(shown)} instead of ${show(expected)}`];
  const names = new Set([...Object.keys(expected), ...Object.keys(shown)]);
  return [...names].flatMap((name) =>
    describeDifferences(expected[name], shown[name], path === '' ? name : `${path}.${name}`),
  );
}

/** Counts one more of a name. */
export function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** Times from request to acknowledgement, in constant memory. */
export interface Latency {
  add(ms: number): void;
  /** Upper bound of the bucket of this quantile; 0 without times. */
  quantileMs(share: number): number;
}

/** Each bucket is 2^(1/8) times the one before: a quantile is off by at most 9 %; 200 of them reach nine hours. */
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
    quantileMs: (share) => {
      let seen = 0;
      for (let bucket = 0; bucket < BUCKETS; bucket++) {
        seen += buckets[bucket]!;
        if (total > 0 && seen >= share * total) return 2 ** (bucket / BUCKETS_PER_DOUBLING);
      }
      return 0;
    },
  };
}

/** To one decimal place. */
export const round = (value: number): number => Math.round(value * 10) / 10;

/** The result of a run, for people and for scripts. */
export interface RunReport {
  readonly run: Run;
  /** Name of the chain; absent for a game. */
  readonly chain?: string;
  /** Members of the JSON object. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** Facts for people, each with its name. */
  readonly lines: readonly (readonly [name: string, fact: string])[];
  /** What holds when nothing differs, as a sentence. */
  readonly clean: string;
  readonly differences: readonly KindOfDifference<string>[];
}

/** Width of the names in front of facts. */
const NAME_WIDTH = 10;

/** The report for people: one fact per line, then the differences, then the verdict. */
export function toLines({ run, chain, lines, clean, differences }: RunReport): string[] {
  const head = `${run.tag}, seed ${run.seed}${chain === undefined ? '' : `, chain ${chain}`}`;
  const facts = [['run', head] as const, ...lines].map(([name, fact]) => `${name.padEnd(NAME_WIDTH)}${fact}`);
  const found = differences.flatMap(({ kind, count: times, first }) => [
    `DIFFERENT ${kind}: ${times}`,
    ...first.map((text) => `  ${text}`),
  ]);
  return [...facts, ...found, differences.length === 0 ? clean : 'The run FAILED.'];
}

/** The report as one object for `--json`. */
export function toJson({ run, chain, facts, differences }: RunReport): Record<string, unknown> {
  const name = chain === undefined ? {} : { chain };
  return { ok: differences.length === 0, run: run.tag, seed: run.seed, ...name, ...facts, differences };
}

/** Prints the report, with `--json` as one line. @returns the exit code of the run */
export function printReport(
  report: RunReport,
  { json }: { readonly json?: boolean | undefined },
  terminal: Terminal,
): ExitCode {
  if (json === true) terminal.result(JSON.stringify(toJson(report)));
  else for (const line of toLines(report)) terminal.result(line);
  return report.differences.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Counts by name as text: `3 × status 500, 1 × time-out`. */
export const describeCounts = (counts: ReadonlyMap<string, number>): string =>
  counts.size === 0 ? 'none' : [...counts].map(([name, times]) => `${times} × ${name}`).join(', ');
