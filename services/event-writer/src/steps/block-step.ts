import { createSchemaReaders, schemaIdOf } from '@playline/contracts';
import {
  createPartReader,
  type EventStore,
  type EventTable,
  isFolding,
  RowBuffer,
  readRecordKey,
} from '@playline/events';
import {
  type BlockBuilder,
  type BlockName,
  createTokenNotes,
  type Outcome,
  RetryableFault,
  type SchemaRegistry,
  type StoreCalls,
  type StreamRecord,
  storeFolding,
  storeOnce,
  type TokenNotes,
  toBlockToken,
  toPartition,
} from '@playline/stream';
import type { CheckFences } from '../fences.ts';

interface BlockRows {
  table: EventTable;
  rows: RowBuffer;
  block: BlockName;
  /** Notes about the block's tokens, shared by all attempts. */
  notes: TokenNotes;
  signal: AbortSignal;
}

type WriteRows = (rows: BlockRows) => Promise<void>;

interface WriteRowsOptions {
  readonly store: EventStore;
  readonly calls: StoreCalls;
  /** Number of shards among which the store divides events. Default: 1. */
  readonly shards?: number | undefined;
}

/**
 * Creates the step that stores a block's rows exactly once, with tokens derived from the block name (`toBlockToken`).
 * When this process or the next owner writes the block again, it uses the same tokens in the same order, and reads the
 * stored rows before it relies on an acknowledgement (`storeOnce`).
 */
export function createWriteRows({ store, calls, shards = 1 }: WriteRowsOptions): WriteRows {
  return async ({ table, rows, block, notes, signal }) => {
    if (rows.rows === 0) return;
    const { partition, start, end, triedBefore = false } = block;
    const tokenOf = (from: number, to: number) => toBlockToken(block, table, from, to);
    const insert = (selected: readonly number[], token: string) =>
      calls.insert(table, selected.length, () => store.insert({ table, rows: rows.pick(selected), token, signal }));
    // The sorting key of these tables contains the position of the record, so copies are merged.
    if (isFolding(table))
      return await storeFolding({ count: rows.rows, token: tokenOf(start, end), triedBefore, notes, insert });
    const partOf = createPartReader(table);
    // Each shard retains its own tokens. Other tables are on one node.
    const isDivided = table === 'events' && shards > 1;
    const shardOf = (row: Buffer) => (isDivided ? toPartition(readRecordKey(row), shards) : 0);
    const storedOffsets = (selected: readonly number[]) => {
      const query = { partition, start, end, rows: selected.map((row) => rows.rowAt(row)) };
      return calls.query(table, () => store.storedOffsets(table, query));
    };
    const access = {
      count: rows.rows,
      offsetOf: (row: number) => rows.offsetAt(row),
      partOf: (row: number) => partOf(rows.rowAt(row)) * shards + shardOf(rows.rowAt(row)),
    };
    await storeOnce({ start, end, triedBefore, notes, tokenOf, rows: { ...access, insert, storedOffsets } });
  };
}

export interface BlockStep {
  openBlock(): BlockBuilder;
  /** Requests this release's schema for the subject in advance, so that the first records do not wait. Never throws. */
  prefetch(subject: string): Promise<void>;
}

export interface BlockParts {
  schemas: SchemaRegistry;
  checkFences: CheckFences;
  writeRows: WriteRows;
  pool: BufferPool;
}

type FramedRecord = StreamRecord & { readonly value: Buffer };

export const OK: Outcome = { kind: 'ok' };
export const FENCED: Outcome = { kind: 'drop', reason: 'fenced' };
const UNFRAMED: Outcome = { kind: 'deadLetter', reason: 'not in the Confluent wire format' };

interface TopicRows<R> {
  tables: readonly EventTable[];
  schema: string;
  /** Creates a reader for records that were written with the schema. */
  createReader(schema: string): R;
  /** Adds a record's rows to one buffer per table. If the result is not `OK`, the caller removes the rows. */
  addRows(buffers: readonly RowBuffer[], reader: R, record: FramedRecord): Outcome;
}

export function createBlockStep<R>(parts: BlockParts, rows: TopicRows<R>): BlockStep {
  const readers = createBlockReaders({ registry: parts.schemas, createReader: rows.createReader });
  return {
    openBlock: () => new RowsBlock(parts, rows, readers),
    prefetch: (subject) => readers.prefetch(subject, rows.schema),
  };
}

class RowsBlock<R> implements BlockBuilder {
  readonly #parts: BlockParts;
  readonly #topic: TopicRows<R>;
  readonly #readers: BlockReaders<R>;
  readonly #notes = createTokenNotes();
  readonly #buffers: readonly RowBuffer[];

  constructor(parts: BlockParts, topic: TopicRows<R>, readers: BlockReaders<R>) {
    this.#parts = parts;
    this.#topic = topic;
    this.#readers = readers;
    this.#buffers = topic.tables.map(() => parts.pool.acquire());
  }

  get rows(): number {
    return this.#buffers.reduce((sum, { rows }) => sum + rows, 0);
  }

  get bytes(): number {
    return this.#buffers.reduce((sum, { length }) => sum + length, 0);
  }

  add(record: StreamRecord): Outcome {
    const schemaId = record.value === null ? null : schemaIdOf(record.value);
    if (schemaId === null) return UNFRAMED;
    const reader = this.#readers.readerOf(schemaId);
    const before = this.#buffers.map(({ rows }) => rows);
    let outcome: Outcome | null = null;
    try {
      outcome = this.#topic.addRows(this.#buffers, reader, record as FramedRecord);
      return outcome;
    } finally {
      if (outcome !== OK) for (const [index, buffer] of this.#buffers.entries()) buffer.truncate(before[index]!);
    }
  }

  /** Writes the rows with one token per table. Offsets are committed only after all tables have been written. */
  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    for (const [index, table] of this.#topic.tables.entries())
      await this.#parts.writeRows({ table, rows: this.#buffers[index]!, block, notes: this.#notes, signal });
  }

  release(): void {
    for (const buffer of this.#buffers) this.#parts.pool.release(buffer);
  }
}

type BlockReaders<R> = ReturnType<typeof createBlockReaders<R>>;

/** The records of a schema cannot be read, so they become dead letters. */
export class UnreadableSchemaError extends Error {
  override readonly name = 'UnreadableSchemaError';
}

/**
 * Creates readers from the schemas in a registry. Adding a record is synchronous, but the registry is not, so a record
 * with an unknown id causes a RetryableFault until the registry has responded. While the registry is down, no record
 * becomes a dead letter.
 */
export function createBlockReaders<R>(options: { registry: SchemaRegistry; createReader(schema: string): R }) {
  const { registry, createReader } = options;
  const readers = createSchemaReaders({ createReader, schemaOf: registry.schemaOf });
  return {
    /**
     * @throws RetryableFault while the schema is being requested or the registry is unreachable
     * @throws UnreadableSchemaError if the id is not in the registry, or no reader can be created for the schema
     */
    readerOf(id: number): R {
      const found = readers.get(id);
      if (found?.kind === 'readable') return found.reader;
      if (found?.kind === 'unreadable') throw new UnreadableSchemaError(found.reason);
      // If the registry is unreachable, the next attempt requests the schema again.
      readers.fetch(id).catch(() => {});
      throw new RetryableFault(`schema ${id} is being requested`);
    },
    /** Requests this release's schema in advance. Never throws. */
    async prefetch(subject: string, schema: string): Promise<void> {
      try {
        await readers.fetch(await registry.idOf(subject, schema));
      } catch {
        // If the registry is down or lacks the schema, records request the schema by id.
      }
    },
  };
}

type BufferPool = ReturnType<typeof createBufferPool>;

/** A block ends with the row that exceeds its limit, so buffers have capacity for twice the largest message. */
const LAST_ROW_BYTES = 64 * 1024;
/** Two buffers (one being written, one being filled) for each of six busy partitions; 192 MiB with the default limits. */
const POOLED_BUFFERS_MAX = 12;
/** Larger buffers are not reused, because they are needed only for rare oversized records. */
const POOLED_GROWTH_MAX = 4;

/**
 * Creates a pool of output buffers, because allocating 16 MiB every second would keep the garbage collector busy. Buffers
 * initially have the capacity of a complete block, because growing by doubling would copy the content about once.
 */
export function createBufferPool(blockBytesMax: number) {
  const free: RowBuffer[] = [];
  return {
    acquire: () => free.pop() ?? new RowBuffer(blockBytesMax + LAST_ROW_BYTES),
    release(buffer: RowBuffer): void {
      if (free.length >= POOLED_BUFFERS_MAX || buffer.bytes.length > POOLED_GROWTH_MAX * blockBytesMax) return;
      buffer.clear();
      free.push(buffer);
    },
  };
}
