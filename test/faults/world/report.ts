import { toTable as formatTable } from '../../measure.ts';

// A seed's results by name, such as `{ kills: 2, 'outage s': 6.1 }`. The report shows the maximum of values with a unit
// (` ms`, ` s`, ` MiB`) and the sum of counts. A count of 0 means that this part of the fault had no effect.
export type Effects = Readonly<Record<string, number>>;

const MEASURE = /^(?<what>.+) (?<unit>ms|s|MiB)$/;

/** False if any part of the fault did not take effect, in which case the seed proves nothing. */
export function tookEffect(effects: Effects): boolean {
  const counts = Object.entries(effects).filter(([name]) => !MEASURE.test(name));
  return counts.length > 0 && counts.every(([, count]) => count > 0);
}

export function addEffects(a: Effects, b: Effects): Effects {
  const sum = { ...a };
  for (const [name, value] of Object.entries(b)) {
    const before = sum[name];
    sum[name] = before === undefined ? value : MEASURE.test(name) ? Math.max(before, value) : before + value;
  }
  return sum;
}

export function tally(names: readonly string[]): Effects {
  return names.reduce<Effects>((sum, name) => addEffects(sum, { [name]: 1 }), {});
}

export const toSeconds = (ms: number): number => Math.round(ms / 100) / 10;

export function toText(effects: Effects): string {
  const texts = Object.entries(effects).map(([name, value]) => {
    const { what, unit } = MEASURE.exec(name)?.groups ?? {};
    return what === undefined ? `${value} ${name}` : `${what} up to ${value} ${unit}`;
  });
  return texts.join('; ');
}

interface SeedNote {
  readonly seed: number;
  readonly text: string;
}

export interface Row {
  readonly fault: number;
  readonly tried: string;
  readonly requested: number;
  /** Seeds for which the fault took effect and all guarantees held. The next five fields cover only these seeds. */
  done: number;
  effects: Effects;
  sent: number;
  acknowledged: number;
  published: number;
  rows: number;
  lost: number;
  duplicated: number;
  /** Seeds for which all guarantees held but the fault did not take effect. */
  readonly withoutEffect: SeedNote[];
  readonly failures: SeedNote[];
}

export interface FaultTrial {
  readonly row: Row;
  /** The guarantee, as a test title. If present, `npm run test:all` tries the fault. */
  readonly title?: string | undefined;
  trySeed(seed: number): Promise<string>;
  close(): Promise<void>;
}

export type SeedEnd = Pick<Row, 'effects' | 'sent' | 'acknowledged' | 'published' | 'rows'>;

export class BrokenGuarantee extends Error {
  override readonly name = 'BrokenGuarantee';
  readonly counts: { lost: number; duplicated: number };
  constructor(text: string, counts: { lost: number; duplicated: number }) {
    super(text);
    this.counts = counts;
  }
}

export function createRow({ fault, tried }: Pick<Row, 'fault' | 'tried'>, requested: number): Row {
  const counts = { sent: 0, acknowledged: 0, published: 0, rows: 0, lost: 0, duplicated: 0 };
  return { fault, tried, requested, done: 0, effects: {}, ...counts, withoutEffect: [], failures: [] };
}

/** Records a seed for which all guarantees held: as done if the fault took effect, otherwise as without effect. */
export function addSeed(row: Row, seed: number, end: SeedEnd): string {
  const text = toText(end.effects);
  if (!tookEffect(end.effects)) {
    row.withoutEffect.push({ seed, text });
    return `no effect: ${text}`;
  }
  row.done += 1;
  row.effects = addEffects(row.effects, end.effects);
  for (const name of ['sent', 'acknowledged', 'published', 'rows'] as const) row[name] += end[name];
  return `done: ${text}`;
}

export function addFailure(row: Row, seed: number, error: unknown): void {
  row.failures.push({ seed, text: error instanceof Error ? error.message : String(error) });
  const broken = error instanceof Error && error.cause instanceof BrokenGuarantee ? error.cause : error;
  if (!(broken instanceof BrokenGuarantee)) return;
  row.lost += broken.counts.lost;
  row.duplicated += broken.counts.duplicated;
}

/** Runs a fault with one seed. @param run returns the effects, or throws if a guarantee is violated */
export async function runSeed(row: Row, seed: number, run: () => Promise<SeedEnd>): Promise<string> {
  try {
    return addSeed(row, seed, await run());
  } catch (error) {
    addFailure(row, seed, error);
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    if (error instanceof Error && error.message.startsWith('fault ')) return error.message;
    return `fault ${row.fault}, FAULT_SEED=${seed} (${row.tried}): ${text}`;
  }
}

const startedSeedsOf = ({ done, withoutEffect, failures }: Row) => done + withoutEffect.length + failures.length;

/** True if a seed failed, or if the fault did not take effect with any seed. */
export function hasFailed(row: Row): boolean {
  return row.failures.length > 0 || (row.done === 0 && startedSeedsOf(row) > 0);
}

/** @returns a warning if seeds were not started, otherwise null */
export function toWarning(rows: readonly Row[], minutes: number): string | null {
  const sum = (read: (row: Row) => number) => rows.reduce((total, row) => total + read(row), 0);
  const [started, requested] = [sum(startedSeedsOf), sum((row) => row.requested)];
  if (started === requested) return null;
  const never = rows.filter((row) => startedSeedsOf(row) === 0).length;
  const text = never === 0 ? '' : `; ${never} of ${rows.length} faults were not tried`;
  return `WARNING: --minutes ${minutes} cut this run short: ${started} of ${requested} seeds were started${text}`;
}

const formatSeeds = (notes: readonly SeedNote[]) =>
  notes.length === 0 ? '0' : `${notes.length} (seeds ${notes.map(({ seed }) => seed).join(' ')})`;

const COLUMNS: Readonly<Record<string, (row: Row) => string | number>> = {
  fault: ({ fault }) => fault,
  tried: ({ tried }) => tried,
  'seeds done/requested': ({ done, requested }) => `${done}/${requested}`,
  effects: ({ effects }) => toText(effects),
  sent: ({ sent }) => sent,
  acknowledged: ({ acknowledged }) => acknowledged,
  published: ({ published }) => published,
  rows: ({ rows }) => rows,
  lost: ({ lost }) => lost,
  duplicated: ({ duplicated }) => duplicated,
  'no effect': ({ withoutEffect }) => formatSeeds(withoutEffect),
  failed: ({ failures }) => formatSeeds(failures),
};

export const toTable = (rows: readonly Row[]): string => formatTable(COLUMNS, rows);
