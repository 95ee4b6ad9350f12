import { randomUUID } from 'node:crypto';
import type { Metrics } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { OversizeFault, RetryableFault } from '../ports.ts';

/** Rows of a block for one table, identified by index. Offsets are unique, so they identify stored rows. */
export interface TokenRows {
  readonly count: number;
  offsetOf(row: number): number;
  /** The table partition of the row. The store keeps tokens per partition. */
  partOf(row: number): number;
  /**
   * Inserts the rows, unless the store knows the token.
   * @throws RetryableFault when it is unknown whether the rows are stored, OversizeFault when there were too many
   */
  insert(rows: readonly number[], token: string): Promise<void>;
  /** Which of these rows are stored, by offset. @throws RetryableFault */
  storedOffsets(rows: readonly number[]): Promise<ReadonlySet<number>>;
}

/** What an owner knows about the tokens of a block, kept between attempts. */
export interface TokenNotes {
  /** Tokens that the store certainly knows: further inserts under them are dropped. */
  readonly closed: Set<string>;
  /** How often an insert under a token was refused for its size. */
  readonly refusals: Map<string, number>;
}

export const createTokenNotes = (): TokenNotes => ({ closed: new Set(), refusals: new Map() });

export interface StoreOnceOptions {
  readonly rows: TokenRows;
  readonly start: number;
  readonly end: number;
  /** The token for the rows in a range of offsets, the same for every owner. */
  tokenOf(start: number, end: number): string;
  /** True when rows of the block may have been sent before. */
  readonly triedBefore: boolean;
  readonly notes: TokenNotes;
}

/** After this many refusals under a token (about three seconds), size is the cause. Halving too early costs little. */
const REFUSALS_MAX = 5;

/**
 * Stores the rows of a block once, whatever earlier attempts did. To be called until it resolves. For a block that was
 * tried before, (1) stored rows are omitted; (2) the rest is sent under the range's token, so that the store drops
 * copies in flight; (3) rows that are still missing are sent under the tokens of the two halves. A range that cannot be
 * halved uses further tokens. Every owner uses the same tokens in the same order.
 * @throws RetryableFault; Error, before anything is sent, when two rows come from one record
 */
export async function storeOnce(options: StoreOnceOptions): Promise<void> {
  const { rows, start, end } = options;
  checkOffsets(rows);
  const all = Array.from({ length: rows.count }, (_, row) => row);
  if (!options.triedBefore) return await insertNamed(options, all, options.tokenOf(start, end));
  await storeRest(options, await findMissing(rows, all), { start, end });
}

/** @throws Error when two rows have the same offset: a lost second row would count as stored */
function checkOffsets({ count, offsetOf }: TokenRows): void {
  let last = -1;
  let row = 0;
  // Rows are nearly always in log order, which is checked without memory.
  for (; row < count; row++) {
    const offset = offsetOf(row);
    if (offset <= last) break;
    last = offset;
  }
  if (row === count) return;
  const seen = new Set<number>();
  for (row = 0; row < count; row++) {
    const offset = offsetOf(row);
    if (seen.has(offset)) throw new Error(`two rows from the record at offset ${offset} cannot be stored exactly once`);
    seen.add(offset);
  }
}

async function findMissing(rows: TokenRows, candidates: readonly number[]): Promise<number[]> {
  if (candidates.length === 0) return [];
  const stored = await rows.storedOffsets(candidates);
  return candidates.filter((row) => !stored.has(rows.offsetOf(row)));
}

async function storeRest(options: StoreOnceOptions, rest: readonly number[], range: { start: number; end: number }) {
  if (rest.length === 0) return;
  const { rows, tokenOf } = options;
  const { start, end } = range;
  const token = tokenOf(start, end);
  await close(options, rest, token);
  const missing = await findMissing(rows, rest);
  if (missing.length === 0) return;
  if (end - start <= 1) return await storeUnderFurther(options, missing, token);
  const middle = start + Math.floor((end - start) / 2);
  const isLow = (row: number) => rows.offsetOf(row) < middle;
  await storeRest(options, missing.filter(isLow), { start, end: middle });
  await storeRest(
    options,
    missing.filter((row) => !isLow(row)),
    { start: middle, end },
  );
}

/** Stores the rows of a range that cannot be halved, under further tokens that are the same for every owner. */
async function storeUnderFurther(options: StoreOnceOptions, rest: readonly number[], token: string): Promise<void> {
  for (let missing = rest, further = 1; missing.length > 0; further++) {
    await close(options, missing, `${token}|${further}`);
    missing = await findMissing(options.rows, missing);
  }
}

/**
 * Makes the store keep the token in each table partition: with all rows, or one row per partition if there are too
 * many.
 */
async function close(options: StoreOnceOptions, rest: readonly number[], token: string): Promise<void> {
  const { rows, notes } = options;
  if (notes.closed.has(token)) return;
  if (rest.length > 1 && (notes.refusals.get(token) ?? 0) >= REFUSALS_MAX) {
    const oneOfEach = new Map(rest.map((row) => [rows.partOf(row), row]));
    for (const row of oneOfEach.values()) await rows.insert([row], token);
  } else await insertNamed(options, rest, token);
  notes.closed.add(token);
}

function insertNamed({ rows, notes }: StoreOnceOptions, selected: readonly number[], token: string): Promise<void> {
  return countRefusal(notes, token, () => rows.insert(selected, token));
}

async function countRefusal(notes: TokenNotes, token: string, insert: () => Promise<void>): Promise<void> {
  try {
    await insert();
  } catch (fault) {
    if (fault instanceof OversizeFault) notes.refusals.set(token, (notes.refusals.get(token) ?? 0) + 1);
    throw fault;
  }
}

export interface StoreFoldingOptions {
  readonly count: number;
  /** Token for the rows, used by the first attempt only. */
  readonly token: string;
  readonly triedBefore: boolean;
  readonly notes: TokenNotes;
  /** @throws RetryableFault when it is unknown whether the rows are stored, OversizeFault when there were too many */
  insert(rows: readonly number[], token: string): Promise<void>;
}

/**
 * Stores rows in a table that deduplicates rows. To be called until it resolves. After the first attempt, rows are sent
 * under new tokens, so an acknowledgement proves that they are stored. Rows refused for their size are halved.
 * @throws RetryableFault
 */
export async function storeFolding(options: StoreFoldingOptions): Promise<void> {
  const { count, token, notes, insert } = options;
  const refusals = notes.refusals.get(token) ?? 0;
  const size = Math.max(1, Math.ceil(count / 2 ** Math.floor(refusals / REFUSALS_MAX)));
  for (let from = 0; from < count; from += size) {
    const piece = `${token}|${size}|${from}`;
    if (notes.closed.has(piece)) continue;
    const rows = Array.from({ length: Math.min(size, count - from) }, (_, index) => from + index);
    const isFirst = !options.triedBefore && size === count;
    await countRefusal(notes, token, () => insert(rows, isFirst ? token : `${piece}|${randomUUID()}`));
    notes.closed.add(piece);
  }
}

export type StoreCalls = ReturnType<typeof createStoreCalls>;

/** From a small block on an idle server to a block that waits for merges. */
const INSERT_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Measures rows, inserts, insert durations and faults by table, and converts faults for block consumers. */
export function createStoreCalls(metrics: Metrics) {
  const rowsTotal = metrics.counter('playline_store_rows_total', 'Rows acknowledged by the store', ['table']);
  const insertsTotal = metrics.counter('playline_store_inserts_total', 'Inserts acknowledged by the store', ['table']);
  const seconds = metrics.histogram('playline_store_insert_duration_seconds', 'Duration of acknowledged inserts', {
    bucketsSeconds: INSERT_SECONDS,
    labelNames: ['table'],
  });
  const faultsTotal = metrics.counter('playline_store_faults_total', 'Store faults, by error name', ['table', 'code']);
  const query = async <T>(table: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreFault)) throw error;
      faultsTotal.inc({ table, code: error.code });
      throw toStreamFault(error);
    }
  };
  return {
    query,
    /** Runs an insert. @param rows number of rows, counted after the acknowledgement */
    insert: (table: string, rows: number, work: () => Promise<void>): Promise<void> =>
      query(table, async () => {
        const stop = seconds.startTimer({ table });
        await work();
        stop();
        rowsTotal.inc({ table }, rows);
        insertsTotal.inc({ table });
      }),
  };
}

function toStreamFault(fault: StoreFault): Error {
  if (fault.kind === 'final') return fault;
  const Fault = fault.kind === 'oversize' ? OversizeFault : RetryableFault;
  return new Fault(fault.message, { cause: fault });
}
