import { createSchemaReaders, schemaIdOf } from '@playline/contracts';
import {
  createPartReader,
  type EventStore,
  type EventTable,
  isFolding,
  type OffsetTable,
  RowBuffer,
  type StoredRowsQuery,
} from '@playline/events';
import {
  type BlockBuilder,
  type BlockName,
  type Outcome,
  RetryableFault,
  type SchemaRegistry,
  type StoreCalls,
  type StreamRecord,
  storeFolding,
  storeOnce,
  type TokenNotes,
  toBlockToken,
} from '@playline/stream';
import type { CheckFences } from '../fences.ts';

/** Rows of one block for one table. */
interface BlockRows {
  table: EventTable;
  rows: RowBuffer;
  block: BlockName;
  /** One for each block, kept over all attempts. */
  notes: TokenNotes;
  signal: AbortSignal;
}

type WriteRows = (rows: BlockRows) => Promise<void>;

type Insert = (rows: readonly number[], token: string) => Promise<void>;
type Ask = (question: StoredRowsQuery) => Promise<ReadonlySet<number>>;

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
    const ask: Ask = (question) => calls.query(table, () => store.storedOffsets(table, question));
    await storeByOffset({ ...given, table }, { insert, ask });
  };
}

async function storeByOffset(given: BlockRows & { table: OffsetTable }, { insert, ask }: { insert: Insert; ask: Ask }) {
  const { table, rows, block, notes } = given;
  const { partition, start, end, triedBefore = false } = block;
  const partOf = createPartReader(table);
  await storeOnce({
    start,
    end,
    triedBefore,
    notes,
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

/** How the records of one topic are turned into blocks. */
export interface BlockStep {
  openBlock(): BlockBuilder;
  /** Requests this release's schema of the subject in advance, so that first records need not wait. Never throws. */
  prefetch(subject: string): Promise<void>;
}

/** Parts shared by the steps of all topics. */
export interface BlockParts {
  schemas: SchemaRegistry;
  checkFences: CheckFences;
  writeRows: WriteRows;
  pool: BufferPool;
}

/** A record whose value has a Confluent frame. */
export type FramedRecord = StreamRecord & { readonly value: Buffer };

/** Outcome of a record without a Confluent frame. */
export const UNFRAMED: Outcome = { kind: 'deadLetter', reason: 'not in the Confluent wire format' };

/** The schema id of a framed record; null for any other. */
export function framedSchemaIdOf(record: StreamRecord): number | null {
  return record.value === null ? null : schemaIdOf(record.value);
}

/** Readers of records, one for each schema id, for callers that cannot wait. */
export interface BlockReaders<R> {
  /**
   * The reader of a schema id.
   * @throws RetryableFault while the schema is being requested, or while the registry is not reachable
   * @throws UnreadableSchemaError when the registry does not know the id, or no reader can be built from the schema
   */
  readerOf(id: number): R;
  /** Requests this release's schema in advance, so that the first records need not wait. Never throws. */
  prefetch(subject: string, schema: string): Promise<void>;
}

/** No record of this schema can be read, so it becomes a dead letter. */
export class UnreadableSchemaError extends Error {
  override readonly name = 'UnreadableSchemaError';
}

/**
 * Creates readers from the schemas of a registry. Taking a record is synchronous and the registry is not, so a record
 * with an unknown id causes a RetryableFault until the registry has answered. It is never a dead letter only because
 * the registry is down.
 */
export function createBlockReaders<R>(options: {
  registry: SchemaRegistry;
  createReader(schema: string): R;
  /** Monotonic. */
  nowMs?: () => number;
}): BlockReaders<R> {
  const { registry, ...rest } = options;
  const readers = createSchemaReaders({ ...rest, schemaOf: registry.schemaOf });
  return {
    readerOf(id) {
      const found = readers.known(id);
      if (found?.kind === 'readable') return found.reader;
      if (found?.kind === 'unreadable') throw new UnreadableSchemaError(found.reason);
      // If the registry is not reachable, the next try asks again.
      readers.fetch(id).catch(() => {});
      throw new RetryableFault(`schema ${id} is being asked for`);
    },
    async prefetch(subject, schema) {
      try {
        await readers.fetch(await registry.idOf(subject, schema));
      } catch {
        // The registry is down or lacks the schema: records will request it by their id.
      }
    },
  };
}

/** Output buffers for reuse. New ones of 8 MB every second would keep the garbage collector busy. */
export interface BufferPool {
  take(): RowBuffer;
  give(buffer: RowBuffer): void;
}

/** A block ends with the row that exceeds its limit, so there is room for twice the largest message. */
const LAST_ROW_BYTES = 64 * 1024;
/** For each of six busy partitions one buffer that is written, two that wait and one that is filled. */
const KEPT_MAX = 24;
/** A buffer that grew further is not kept, because such records are very rare. */
const KEPT_GROWTH_MAX = 4;

/**
 * Buffers have room for a whole block from the start. Untouched parts take no memory, and a buffer that grows by
 * doubling would copy its content about once.
 * @param blockBytesMax limit of a block's rows
 */
export function createBufferPool(blockBytesMax: number): BufferPool {
  const free: RowBuffer[] = [];
  return {
    take: () => free.pop() ?? new RowBuffer(blockBytesMax + LAST_ROW_BYTES),
    give(buffer) {
      if (free.length >= KEPT_MAX || buffer.bytes.length > KEPT_GROWTH_MAX * blockBytesMax) return;
      buffer.clear();
      free.push(buffer);
    },
  };
}
