import {
  createPartReader,
  type EventStore,
  type EventTable,
  isFolding,
  type OffsetTable,
  type RowBuffer,
  type StoredQuestion,
} from '@playline/events';
import {
  type BlockName,
  type NameNotes,
  type StoreCalls,
  storeFolding,
  storeOnce,
  toBlockToken,
} from '@playline/stream';

/** Rows of one block for one table. */
export interface BlockRows {
  table: EventTable;
  rows: RowBuffer;
  block: BlockName;
  /** One for each block, kept over all attempts. */
  notes: NameNotes;
  signal: AbortSignal;
}

export type WriteRows = (rows: BlockRows) => Promise<void>;

type Insert = (rows: readonly number[], token: string) => Promise<void>;
type Ask = (question: StoredQuestion) => Promise<ReadonlySet<number>>;

/**
 * Creates the step that stores a block's rows exactly once, under tokens made from its name (`toBlockToken`). A process
 * that writes the block again, this one or the next owner, uses the same tokens in the same order, and reads the stored
 * rows before it trusts an answer (`storeOnce`).
 */
export function createWriteRows({ store, calls }: { store: EventStore; calls: StoreCalls }): WriteRows {
  return async (given) => {
    const { table, rows, signal } = given;
    if (rows.rows === 0) return;
    const insert: Insert = (asked, token) =>
      calls.insert(table, asked.length, () => store.insert({ table, rows: rows.pick(asked), token, signal }));
    if (isFolding(table)) return await storeFolded(given, insert);
    const ask: Ask = (question) => calls.ask(table, () => store.storedOffsets(table, question));
    await storePlaced({ ...given, table }, { insert, ask });
  };
}

async function storePlaced(given: BlockRows & { table: OffsetTable }, { insert, ask }: { insert: Insert; ask: Ask }) {
  const { table, rows, block, notes } = given;
  const { partition, start, end, triedBefore = false } = block;
  const partOf = createPartReader(table);
  await storeOnce({
    ...{ start, end, triedBefore, notes },
    tokenOf: (from, to) => toBlockToken(block, table, from, to),
    rows: {
      count: rows.rows,
      offsetOf: (row) => rows.offsetAt(row),
      partOf: (row) => partOf(rows.rowAt(row)),
      insert,
      storedOffsets: (asked) => ask({ partition, start, end, rows: asked.map((row) => rows.rowAt(row)) }),
    },
  });
}

/** Such a row includes the place of the decision, so two copies of it count as one row at once. */
async function storeFolded(given: BlockRows, insert: Insert) {
  const { table, rows, block, notes } = given;
  const token = toBlockToken(block, table, block.start, block.end);
  await storeFolding({ count: rows.rows, token, triedBefore: block.triedBefore ?? false, notes, insert });
}
