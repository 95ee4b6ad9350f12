import { createSchemaReaders, schemaIdOf } from '@playline/contracts';
import { RowBuffer } from '@playline/events';
import {
  type BlockBuilder,
  type Outcome,
  RetryableFault,
  type SchemaRegistry,
  type StreamRecord,
} from '@playline/stream';
import type { CheckFences } from './check-fences.ts';
import type { WriteRows } from './write-rows.ts';

/** What becomes of the records of one topic. */
export interface BlockStep {
  openBlock(transformVersion: number): BlockBuilder;
  /** Asks for the schema of the topic's subject that this release knows, so that the first records need not wait. Never throws. */
  prefetch(subject: string): Promise<void>;
}

/** What the steps of all topics share. */
export interface BlockParts {
  schemas: SchemaRegistry;
  checkFences: CheckFences;
  writeRows: WriteRows;
  pool: BufferPool;
}

/** A record with a value in the Confluent frame. */
export type FramedRecord = StreamRecord & { readonly value: Buffer };

/** What is wrong with a record that carries no Confluent frame. */
export const UNFRAMED: Outcome = { kind: 'deadLetter', reason: 'not in the Confluent wire format' };

/** The schema id of a framed record; null for any other. */
export function framedSchemaIdOf(record: StreamRecord): number | null {
  return record.value === null ? null : schemaIdOf(record.value);
}

/** Readers of records, one a schema id, for whoever cannot wait. */
export interface BlockReaders<R> {
  /**
   * The reader of a schema id.
   * @throws RetryableFault while the schema is being asked for, or while the registry is not reachable
   * @throws UnreadableSchemaError when the registry does not know the id, or no reader can be made of the schema
   */
  readerOf(id: number): R;
  /** Asks for the schema that this release would write, so that the first records need not wait. Never throws. */
  prefetch(subject: string, schema: string): Promise<void>;
}

/** No record of this schema can be read: a dead letter. */
export class UnreadableSchemaError extends Error {
  override readonly name = 'UnreadableSchemaError';
}

/**
 * Creates readers from the schemas of a registry. Taking a record is synchronous and the registry is not, so a record of
 * an unknown id is handed back with a RetryableFault until the registry has answered; it is never a dead letter only
 * because the registry is down.
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
      // A registry that is not reachable is asked again by the next try.
      readers.ask(id).catch(() => {});
      throw new RetryableFault(`schema ${id} is being asked for`);
    },
    async prefetch(subject, schema) {
      try {
        await readers.ask(await registry.idOf(subject, schema));
      } catch {
        // The registry is down or does not have it yet: records will ask by their id.
      }
    },
  };
}

/** Output buffers that are used again: a block of 8 MB a second would otherwise keep the collector busy. */
export interface BufferPool {
  take(): RowBuffer;
  give(buffer: RowBuffer): void;
}

/** A block ends with the row that passes its limit: room for one of the largest message's size, twice. */
const LAST_ROW_BYTES = 64 * 1024;
/** One written, two waiting and one filled for each of six busy partitions; more than that is a burst. */
const KEPT_MAX = 24;
/** A buffer that grew further is not kept: one record in millions makes it. */
const KEPT_GROWTH_MAX = 4;

/**
 * Buffers have room for a whole block from the start. What is not written to takes no memory, and a buffer that grows
 * into its block by doubling has copied all of it once by then.
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
