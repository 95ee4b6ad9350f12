import { FRAME_BYTES, type IdentityDecisionRecord } from '@playline/contracts';
import { addLinkRow, addOverrideRows, type RowBuffer } from '@playline/events';
import type { BlockBuilder, BlockName, Outcome, StreamRecord } from '@playline/stream';
import type { SchemaReaders } from '../schema-readers.ts';
import type { CheckFences } from '../steps/check-fences.ts';
import type { WriteRows } from '../steps/write-rows.ts';
import type { BufferPool } from './buffer-pool.ts';
import { type FramedRecord, framedSchemaIdOf, UNFRAMED } from './framed-record.ts';

export interface DecisionBlockOptions {
  decoders: SchemaReaders<(bytes: Buffer) => IdentityDecisionRecord>;
  checkFences: CheckFences;
  writeRows: WriteRows;
  pool: BufferPool;
}

/** Creates blocks of `identity_links` and `identity_overrides` from link decisions: decode, check fences, write. */
export function createDecisionBlocks(options: DecisionBlockOptions): (transformVersion: number) => BlockBuilder {
  return (transformVersion) => new DecisionBlock(options, transformVersion);
}

class DecisionBlock implements BlockBuilder {
  readonly #options: DecisionBlockOptions;
  readonly #transformVersion: number;
  readonly #links: RowBuffer;
  readonly #overrides: RowBuffer;

  constructor(options: DecisionBlockOptions, transformVersion: number) {
    this.#options = options;
    this.#transformVersion = transformVersion;
    this.#links = options.pool.take();
    this.#overrides = options.pool.take();
  }

  get rows(): number {
    return this.#links.rows + this.#overrides.rows;
  }

  get bytes(): number {
    return this.#links.length + this.#overrides.length;
  }

  add(record: StreamRecord): Outcome {
    const schemaId = framedSchemaIdOf(record);
    if (schemaId === null) return UNFRAMED;
    const decode = this.#options.decoders.readerOf(schemaId);
    const decision = decode((record as FramedRecord).value.subarray(FRAME_BYTES));
    const { environmentId, aKey, bKey, moved, eventTime: eventTimeMs, receivedAt: receivedAtMs } = decision;
    const keys = [aKey, bKey, ...moved.map(({ key }) => key)].map((key) => key.toString('hex'));
    if (this.#options.checkFences({ environmentId, keys, eventTimeMs, receivedAtMs }))
      return { kind: 'drop', reason: 'fenced' };
    const overrides = this.#overrides.rows;
    try {
      addOverrideRows(this.#overrides, decision);
      addLinkRow(this.#links, decision, record);
    } catch (error) {
      this.#overrides.truncate(overrides);
      throw error;
    }
    return { kind: 'ok' };
  }

  /** A token for each table; the offsets are committed only when both have their rows. */
  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    const { writeRows } = this.#options;
    const transformVersion = this.#transformVersion;
    await writeRows({ table: 'identity_links', rows: this.#links, block, transformVersion, signal });
    await writeRows({ table: 'identity_overrides', rows: this.#overrides, block, transformVersion, signal });
  }

  release(): void {
    this.#options.pool.give(this.#links);
    this.#options.pool.give(this.#overrides);
  }
}
