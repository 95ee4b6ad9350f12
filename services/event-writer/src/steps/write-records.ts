import { FRAME_BYTES, type RecordCodec } from '@playline/contracts';
import type { RecordRows, RowBuffer } from '@playline/events';
import { type BlockBuilder, type BlockName, createNameNotes, type Outcome, type StreamRecord } from '@playline/stream';
import {
  type BlockParts,
  type BlockReaders,
  type BlockStep,
  createBlockReaders,
  type FramedRecord,
  framedSchemaIdOf,
  UNFRAMED,
} from './block-step.ts';

interface RecordBlockOptions<R> extends BlockParts {
  decoders: BlockReaders<(bytes: Buffer) => R>;
  rows: RecordRows<R>;
}

/** Creates the step of topics with few records: decode them to objects, check fences, write their rows. */
export function createWriteRecords<R>(codec: RecordCodec<R>, rows: RecordRows<R>, parts: BlockParts): BlockStep {
  const decoders = createBlockReaders({ registry: parts.schemas, createReader: codec.decoderOf });
  return {
    openBlock: () => new RecordBlock({ ...parts, decoders, rows }),
    prefetch: (subject) => decoders.prefetch(subject, codec.schema),
  };
}

class RecordBlock<R> implements BlockBuilder {
  readonly #options: RecordBlockOptions<R>;
  readonly #notes = createNameNotes();
  /** One for each table, in the order of the tables. */
  readonly #buffers: RowBuffer[];

  constructor(options: RecordBlockOptions<R>) {
    this.#options = options;
    this.#buffers = options.rows.tables.map(() => options.pool.take());
  }

  get rows(): number {
    return this.#buffers.reduce((sum, { rows }) => sum + rows, 0);
  }

  get bytes(): number {
    return this.#buffers.reduce((sum, { length }) => sum + length, 0);
  }

  add(record: StreamRecord): Outcome {
    const schemaId = framedSchemaIdOf(record);
    if (schemaId === null) return UNFRAMED;
    const { decoders, rows, checkFences } = this.#options;
    const decoded = decoders.readerOf(schemaId)((record as FramedRecord).value.subarray(FRAME_BYTES));
    const allowed = rows.tables.map((table) => table.withoutFenced(decoded, checkFences.isFenced));
    if (allowed.every((one) => one === null)) return { kind: 'drop', reason: 'fenced' };
    const before = this.#buffers.map((buffer) => buffer.rows);
    try {
      for (const [index, { addRows }] of rows.tables.entries()) {
        const own = allowed[index];
        if (own != null) addRows(this.#buffers[index]!, own, record);
      }
    } catch (error) {
      for (const [index, buffer] of this.#buffers.entries()) buffer.truncate(before[index]!);
      throw error;
    }
    return { kind: 'ok' };
  }

  /** Writes under one token for each table. The offsets are committed only when all tables have their rows. */
  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    const { rows, writeRows } = this.#options;
    for (const [index, { table }] of rows.tables.entries())
      await writeRows({ table, rows: this.#buffers[index]!, block, notes: this.#notes, signal });
  }

  release(): void {
    for (const buffer of this.#buffers) this.#options.pool.give(buffer);
  }
}
