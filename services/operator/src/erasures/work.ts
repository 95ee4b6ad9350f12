/** What the subcommands of `erasures` share. */
import { fromUuidText } from '@playline/contracts';
import type { ErasureRecords, ErasureRows } from '@playline/erasure';
import type { People } from '@playline/people';
import { withStore } from '../await-store.ts';
import { type ExitCode, type Terminal, UsageError } from '../command.ts';

/** Each opener throws UnreachableError when its address is not configured. */
export interface ErasuresContext {
  readonly openRows: () => Promise<ErasureRows>;
  readonly openRecords: () => Promise<ErasureRecords>;
  readonly openPeople: () => Promise<People>;
  readonly wallClockMs: () => number;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

export interface ErasuresWork {
  readonly context: ErasuresContext;
  readonly records: ErasureRecords;
  readonly json: boolean;
  readonly terminal: Terminal;
}

export interface ErasureWork extends ErasuresWork {
  readonly erasureId: Buffer;
}

/** @throws UnreachableError, or what `work` throws */
export async function withRecords(
  context: ErasuresContext,
  work: (records: ErasureRecords) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withStore('ClickHouse', await context.openRecords(), work);
}

/** The rows are in the same store as the records, which already answers. */
export async function withRows<T>({ openRows }: ErasuresContext, work: (rows: ErasureRows) => Promise<T>): Promise<T> {
  const rows = await openRows();
  try {
    return await work(rows);
  } finally {
    await rows.close();
  }
}

const ERASURE_ID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** Errors do not repeat the argument, which may be the id of a person. @throws UsageError */
export function parseErasureId(text: string): Buffer {
  if (!ERASURE_ID.test(text))
    throw new UsageError('expected an x-erasure-id of the gateway, such as 0192f3a4-5b6c-7d8e-9f00-112233445566');
  return fromUuidText(text);
}

const UNITS: readonly [name: string, ms: number][] = [
  ['d', 24 * 60 * 60 * 1000],
  ['h', 60 * 60 * 1000],
  ['min', 60 * 1000],
  ['s', 1000],
];

/** In the largest unit of which there are at least two: `90 s`, `47 h`. */
export function toSpanText(ms: number): string {
  const [name, unit] = UNITS.find(([, each]) => ms >= 2 * each) ?? ['s', 1000];
  return `${Math.max(0, Math.floor(ms / unit))} ${name}`;
}

export function toAgeText(atMs: number, nowMs: number): string {
  return atMs <= nowMs ? `${toSpanText(nowMs - atMs)} ago` : `in ${toSpanText(atMs - nowMs)}`;
}

const LABEL_WIDTH = 12;

export const toLine = (label: string, text: string): string => `${label.padEnd(LABEL_WIDTH)}${text}`;

/** Lines with one label, before the first. */
export const toLinesOf = (label: string, texts: readonly string[]): string[] =>
  texts.map((text, index) => toLine(index === 0 ? label : '', text));
