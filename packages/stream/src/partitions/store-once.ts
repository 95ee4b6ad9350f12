import { randomUUID } from 'node:crypto';
import type { Metrics } from '@playline/runtime';
import { StoreFault } from '@playline/stores';
import { OversizeFault, RetryableFault } from '../ports.ts';

/** A block's rows for one table, identified by index. Offsets are unique, so they identify stored rows. */
export interface TokenRows {
  readonly count: number;
  offsetOf(row: number): number;
  /** Returns the row's table partition. The store retains tokens per partition. */
  partOf(row: number): number;
  /**
   * Inserts the rows, unless the store already has the token.
   * @throws RetryableFault if it is unknown whether the rows are stored, OversizeFault if there were too many rows
   */
  insert(rows: readonly number[], token: string): Promise<void>;
  /** Returns which of these rows are stored, by offset. @throws RetryableFault */
  storedOffsets(rows: readonly number[]): Promise<ReadonlySet<number>>;
}

/** What an owner knows about a block's tokens, retained between attempts. */
export interface TokenNotes {
  /** Tokens that the store is known to have, so that further inserts with these tokens are dropped. */
  readonly closed: Set<string>;
  /** How many times an insert with each token was rejected because of its size. */
  readonly rejections: Map<string, number>;
}

export const createTokenNotes = (): TokenNotes => ({ closed: new Set(), rejections: new Map() });

export interface StoreOnceOptions {
  readonly rows: TokenRows;
  readonly start: number;
  readonly end: number;
  /** Returns the token for the rows in a range of offsets. The token is the same for every owner. */
  tokenOf(start: number, end: number): string;
  /** True if rows of the block may have been sent before. */
  readonly triedBefore: boolean;
  readonly notes: TokenNotes;
}

/** After this many rejections (about three seconds), size is assumed to be the cause. Halving early costs little. */
const REJECTIONS_MAX = 5;

/**
 * Stores the rows of a block exactly once, regardless of earlier attempts. Must be called until it resolves. For a
 * block that was tried before, (1) stored rows are omitted; (2) the other rows are sent with the range's token, so that
 * the store drops duplicates in flight; (3) rows that are still missing are sent with the tokens of the two halves. A
 * range that cannot be halved uses additional tokens. Every owner uses the same tokens in the same order.
 * @throws RetryableFault; Error, before anything is sent, if two rows come from one record
 */
export async function storeOnce(options: StoreOnceOptions): Promise<void> {
  const { rows, start, end } = options;
  checkOffsets(rows);
  const all = Array.from({ length: rows.count }, (_, row) => row);
  const token = options.tokenOf(start, end);
  if (!options.triedBefore) return await countRejection(options.notes, token, () => rows.insert(all, token));
  await storeMissing(options, await findMissing(rows, all), { start, end });
}

/** @throws Error if two rows have the same offset, because a lost second row would count as stored */
function checkOffsets({ count, offsetOf }: TokenRows): void {
  let last = -1;
  let row = 0;
  // Rows are nearly always in log order, which can be checked without a set.
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

async function storeMissing(options: StoreOnceOptions, rest: readonly number[], range: { start: number; end: number }) {
  if (rest.length === 0) return;
  const { rows, tokenOf } = options;
  const { start, end } = range;
  const token = tokenOf(start, end);
  await closeToken(options, rest, token);
  let missing = await findMissing(rows, rest);
  // A range that cannot be halved uses additional tokens.
  for (let additional = 1; end - start <= 1 && missing.length > 0; additional++) {
    await closeToken(options, missing, `${token}|${additional}`);
    missing = await findMissing(rows, missing);
  }
  const middle = start + Math.floor((end - start) / 2);
  const isLow = (row: number) => rows.offsetOf(row) < middle;
  await storeMissing(options, missing.filter(isLow), { start, end: middle });
  await storeMissing(
    options,
    missing.filter((row) => !isLow(row)),
    { start: middle, end },
  );
}

/**
 * Makes the store record the token in each table partition, with all rows, or with one row each if there are too many.
 */
async function closeToken(options: StoreOnceOptions, rest: readonly number[], token: string): Promise<void> {
  const { rows, notes } = options;
  if (notes.closed.has(token)) return;
  if (rest.length > 1 && (notes.rejections.get(token) ?? 0) >= REJECTIONS_MAX) {
    const rowByPartition = new Map(rest.map((row) => [rows.partOf(row), row]));
    for (const row of rowByPartition.values()) await rows.insert([row], token);
  } else await countRejection(notes, token, () => rows.insert(rest, token));
  notes.closed.add(token);
}

async function countRejection(notes: TokenNotes, token: string, insert: () => Promise<void>): Promise<void> {
  try {
    await insert();
  } catch (fault) {
    if (fault instanceof OversizeFault) notes.rejections.set(token, (notes.rejections.get(token) ?? 0) + 1);
    throw fault;
  }
}

export interface StoreFoldingOptions {
  readonly count: number;
  /** The token for the rows, used only by the first attempt. */
  readonly token: string;
  readonly triedBefore: boolean;
  readonly notes: TokenNotes;
  /** @throws RetryableFault if it is unknown whether the rows are stored, OversizeFault if there were too many rows */
  insert(rows: readonly number[], token: string): Promise<void>;
}

/**
 * Stores rows in a table that deduplicates rows. Must be called until it resolves. After the first attempt, rows are
 * sent with new tokens, so that an acknowledgement proves that they are stored. Rows that are rejected because of their
 * size are halved.
 * @throws RetryableFault
 */
export async function storeFolding(options: StoreFoldingOptions): Promise<void> {
  const { count, token, notes, insert } = options;
  const rejections = notes.rejections.get(token) ?? 0;
  const size = Math.max(1, Math.ceil(count / 2 ** Math.floor(rejections / REJECTIONS_MAX)));
  for (let from = 0; from < count; from += size) {
    const chunkToken = `${token}|${size}|${from}`;
    if (notes.closed.has(chunkToken)) continue;
    const rows = Array.from({ length: Math.min(size, count - from) }, (_, index) => from + index);
    const isFirst = !options.triedBefore && size === count;
    await countRejection(notes, token, () => insert(rows, isFirst ? token : `${chunkToken}|${randomUUID()}`));
    notes.closed.add(chunkToken);
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
    /** Runs an insert. @param rows the number of rows, counted after the acknowledgement */
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
  if (fault.kind === 'permanent') return fault;
  const Fault = fault.kind === 'oversize' ? OversizeFault : RetryableFault;
  return new Fault(fault.message, { cause: fault });
}
