import {
  createPartReader,
  type EventStore,
  type EventTable,
  isFolding,
  type OffsetTable,
  type RowBuffer,
  type StoredQuestion,
  StoreFault,
} from '@playline/events';
import {
  type BlockName,
  type NameNotes,
  OversizeFault,
  RetryableFault,
  storeFolding,
  storeOnce,
} from '@playline/stream';
import type { WriterMetrics } from '../writer-metrics.ts';

/** Rows of one block for one table. */
export interface BlockRows {
  table: EventTable;
  rows: RowBuffer;
  block: BlockName;
  transformVersion: number;
  /** One for a block, kept from attempt to attempt. */
  notes: NameNotes;
  signal: AbortSignal;
}

export type WriteRows = (rows: BlockRows) => Promise<void>;

type Insert = (rows: readonly number[], token: string) => Promise<void>;
type Ask = (question: StoredQuestion) => Promise<ReadonlySet<number>>;

/**
 * Creates the step that stores a block's rows once.
 * The token names the rows of a range of offsets: topic, partition, offsets, time of the first record, table and version
 * of the transform and, for a log that was replaced, when it was decided to read on. Whoever writes the block again, this process or the next owner, goes through the same tokens in the
 * same order, and reads what stands before it takes an answer for its rows (`storeOnce`).
 */
export function createWriteRows(options: { store: EventStore; metrics: WriterMetrics }): WriteRows {
  const { store, metrics } = options;
  const told = async <T>(table: EventTable, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreFault)) throw error;
      metrics.countFault(table, error.code);
      throw toStreamFault(error);
    }
  };
  return async (given) => {
    const { table, rows, signal } = given;
    if (rows.rows === 0) return;
    const insert: Insert = (asked, token) =>
      told(table, async () => {
        const stop = metrics.startInsert(table);
        await store.insert({ table, rows: rows.pick(asked), token, signal });
        stop(asked.length);
      });
    if (isFolding(table)) return await storeFolded(given, insert);
    const ask: Ask = (question) => told(table, () => store.storedOffsets(table, question));
    await storePlaced({ ...given, table }, { insert, ask });
  };
}

function toStreamFault(fault: StoreFault): Error {
  if (fault.kind === 'final') return fault;
  const Fault = fault.kind === 'oversize' ? OversizeFault : RetryableFault;
  return new Fault(fault.message, { cause: fault });
}

function tokenOf({ table, block, transformVersion }: BlockRows, start: number, end: number): string {
  const { topic, partition, firstTimestampMs = 0, logDecidedAtMs } = block;
  const log = logDecidedAtMs === undefined ? '' : `|${logDecidedAtMs}`;
  return `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}|${table}|${transformVersion}${log}`;
}

async function storePlaced(given: BlockRows & { table: OffsetTable }, { insert, ask }: { insert: Insert; ask: Ask }) {
  const { table, rows, block, notes } = given;
  const { partition, start, end, triedBefore = false } = block;
  const partOf = createPartReader(table);
  await storeOnce({
    ...{ start, end, triedBefore, notes },
    tokenOf: (from, to) => tokenOf(given, from, to),
    rows: {
      count: rows.rows,
      offsetOf: (row) => rows.offsetAt(row),
      partOf: (row) => partOf(rows.rowAt(row)),
      insert,
      storedOffsets: (asked) => ask({ partition, start, end, rows: asked.map((row) => rows.rowAt(row)) }),
    },
  });
}

/** The place of the decision is part of what such a row says: written twice it is one row at once. */
async function storeFolded(given: BlockRows, insert: Insert) {
  const { rows, block, notes } = given;
  const token = tokenOf(given, block.start, block.end);
  await storeFolding({ count: rows.rows, token, triedBefore: block.triedBefore ?? false, notes, insert });
}
