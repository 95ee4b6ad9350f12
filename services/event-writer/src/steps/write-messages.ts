import { messageRecordCodec } from '@playline/contracts';
import { blankAnonymous, createRowPlan, type RowBuffer, type RowPlan, RowTranscoder } from '@playline/events';
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

interface MessageBlockOptions extends BlockParts {
  plans: BlockReaders<RowPlan>;
}

/** Creates the step of `audience.messages`: transcode without building objects, check fences, write `events`. */
export function createWriteMessages(parts: BlockParts): BlockStep {
  const plans = createBlockReaders({ registry: parts.schemas, createReader: createRowPlan });
  // Blocks are filled one record at a time, so all can share one transcoder.
  const transcoder = new RowTranscoder();
  return {
    openBlock: () => new MessageBlock({ ...parts, plans }, transcoder),
    prefetch: (subject) => plans.prefetch(subject, messageRecordCodec.schema),
  };
}

class MessageBlock implements BlockBuilder {
  readonly #options: MessageBlockOptions;
  readonly #transcoder: RowTranscoder;
  readonly #notes = createNameNotes();
  readonly #events: RowBuffer;

  constructor(options: MessageBlockOptions, transcoder: RowTranscoder) {
    this.#options = options;
    this.#transcoder = transcoder;
    this.#events = options.pool.take();
  }

  get rows(): number {
    return this.#events.rows;
  }

  get bytes(): number {
    return this.#events.length;
  }

  add(record: StreamRecord): Outcome {
    const schemaId = framedSchemaIdOf(record);
    if (schemaId === null) return UNFRAMED;
    const plan = this.#options.plans.readerOf(schemaId);
    const rows = this.#events.rows;
    this.#transcoder.add(this.#events, plan, record as FramedRecord);
    try {
      const verdict = this.#options.checkFences.ofRow(this.#transcoder.head);
      if (verdict === 'keep') return { kind: 'ok' };
      if (verdict === 'blank') {
        blankAnonymous(this.#events);
        return { kind: 'ok' };
      }
    } catch (error) {
      this.#events.truncate(rows);
      throw error;
    }
    this.#events.truncate(rows);
    return { kind: 'drop', reason: 'fenced' };
  }

  async write(block: BlockName, signal: AbortSignal): Promise<void> {
    await this.#options.writeRows({ table: 'events', rows: this.#events, block, notes: this.#notes, signal });
  }

  release(): void {
    this.#options.pool.give(this.#events);
  }
}
