import {
  accessKeyCodec,
  accountCodec,
  auditEntryCodec,
  collectionCodec,
  consentCodec,
  FRAME_BYTES,
  identityDecisionCodec,
  messageRecordCodec,
  projectCodec,
  type RecordCodec,
  rateLimitKeyCodec,
  rejectionCodec,
  schemaSubjectOf,
  signableKeyCodec,
  TOPICS,
  type Topic,
} from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import {
  accountAuditRows,
  blankAnonymous,
  collectionAuditRows,
  consentRows,
  createRowPlan,
  decisionRows,
  type EventStore,
  entryAuditRows,
  keyAuditRows,
  projectAuditRows,
  type RecordRows,
  type RowBuffer,
  type RowPlan,
  RowTranscoder,
  rateLimitKeyAuditRows,
  rejectionRows,
  signableKeyAuditRows,
} from '@playline/events';
import type { Metrics } from '@playline/runtime';
import {
  type BlockBuilder,
  type BlockName,
  type BlockSink,
  createStoreCalls,
  createTokenNotes,
  type Outcome,
  type Producer,
  RetryableFault,
  type SchemaRegistry,
  type StreamRecord,
  sendDeadLetters,
} from '@playline/stream';
import { createCheckFences } from './fences.ts';
import {
  type BlockParts,
  type BlockReaders,
  type BlockStep,
  createBlockReaders,
  createBufferPool,
  createWriteRows,
  type FramedRecord,
  framedSchemaIdOf,
  UNFRAMED,
} from './steps/block-step.ts';

/** Raised when the same record gives other rows. */
const TRANSFORM_VERSION = 1;

export interface PipelineOptions {
  store: EventStore;
  schemas: SchemaRegistry;
  fences: FenceSet;
  deadLetters: Producer;
  metrics: Metrics;
  topicPrefix: string;
  /** The block consumer's limit. Buffers that are a little larger are kept for the next block. */
  blockBytesMax: number;
}

/** The whole flow: which topics are read and how their records are stored. */
export interface Pipeline {
  /** Topics about players. */
  readonly topics: readonly string[];
  /** Topics about operators. They have their own consumer group, so that they cannot delay the others. */
  readonly auditTopics: readonly string[];
  readonly sink: BlockSink;
  /** Requests the schemas of this release in advance, so that the first records need not wait. */
  prefetch(): Promise<void>;
}

/**
 * messages   -> transcode -> check fences -> write events
 * decisions  -> decode    -> check fences -> write identity_links, identity_overrides
 * consents   -> decode    -> check fences -> write consent_log
 * rejections -> decode                    -> write message_rejections (they carry no identity to fence)
 * access     -> decode    -> derive       -> write audit_log
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { store, schemas, fences, metrics, topicPrefix, blockBytesMax } = options;
  const writerMetrics = createWriterMetrics(metrics);
  const parts = {
    schemas,
    checkFences: createCheckFences(fences, writerMetrics.countBlanked),
    writeRows: createWriteRows({ store, calls: createStoreCalls(metrics) }),
    pool: createBufferPool(blockBytesMax),
  };
  const audit = new Map(auditStepsOf(parts).map(([topic, step]) => [topicPrefix + topic.name, step]));
  const flows = new Map<string, BlockStep>([
    [topicPrefix + TOPICS.messages.name, createWriteMessages(parts)],
    [topicPrefix + TOPICS.identityDecisions.name, createWriteRecords(identityDecisionCodec, decisionRows, parts)],
    [topicPrefix + TOPICS.consents.name, createWriteRecords(consentCodec, consentRows, parts)],
    [topicPrefix + TOPICS.rejections.name, createWriteRecords(rejectionCodec, rejectionRows, parts)],
  ]);
  const steps = new Map([...flows, ...audit]);
  const deferring = (block: BlockBuilder) =>
    createDeferringBlock(block, {
      deadLetters: options.deadLetters,
      countDeferred: writerMetrics.countDeferred,
    });

  return {
    topics: [...flows.keys()],
    auditTopics: [...audit.keys()],
    sink: {
      transformVersion: TRANSFORM_VERSION,
      openBlock(topic) {
        const step = steps.get(topic);
        if (step === undefined) throw new Error(`no step reads ${topic}`);
        return deferring(step.openBlock());
      },
    },
    prefetch: async () => {
      await Promise.all([...steps].map(([topic, step]) => step.prefetch(schemaSubjectOf(topic))));
    },
  };
}

/** Topics whose records show who changed access to the service. */
const auditStepsOf = (parts: BlockParts): [topic: Topic, step: BlockStep][] => [
  [TOPICS.projects, createWriteRecords(projectCodec, projectAuditRows, parts)],
  [TOPICS.accessKeys, createWriteRecords(accessKeyCodec, keyAuditRows, parts)],
  [TOPICS.rateLimitKeys, createWriteRecords(rateLimitKeyCodec, rateLimitKeyAuditRows, parts)],
  [TOPICS.collections, createWriteRecords(collectionCodec, collectionAuditRows, parts)],
  [TOPICS.accounts, createWriteRecords(accountCodec, accountAuditRows, parts)],
  [TOPICS.signableKeys, createWriteRecords(signableKeyCodec, signableKeyAuditRows, parts)],
  [TOPICS.audit, createWriteRecords(auditEntryCodec, entryAuditRows, parts)],
];

/** Metrics of this service. The stream counts records, drops, dead letters, blocks, lag and calls of the store. */
function createWriterMetrics(metrics: Metrics) {
  const deferredTotal = metrics.counter(
    'playline_event_writer_deferred_total',
    'Records read only when their block was written',
    ['outcome'],
  );
  const blankedTotal = metrics.counter(
    'playline_event_writer_blanked_total',
    'Events stored without the anonymous id of somebody erased, which they carried',
  );
  return {
    countBlanked: () => blankedTotal.inc({}),
    countDeferred: (outcome: Outcome['kind']) => deferredTotal.inc({ outcome }),
  };
}

interface MessageBlockOptions extends BlockParts {
  plans: BlockReaders<RowPlan>;
}

/** Creates the step of `audience.messages`: transcode without building objects, check fences, write `events`. */
function createWriteMessages(parts: BlockParts): BlockStep {
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
  readonly #notes = createTokenNotes();
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

interface RecordBlockOptions<R> extends BlockParts {
  decoders: BlockReaders<(bytes: Buffer) => R>;
  rows: RecordRows<R>;
}

/** Creates the step of topics with few records: decode them to objects, check fences, write their rows. */
function createWriteRecords<R>(codec: RecordCodec<R>, rows: RecordRows<R>, parts: BlockParts): BlockStep {
  const decoders = createBlockReaders({ registry: parts.schemas, createReader: codec.decoderOf });
  return {
    openBlock: () => new RecordBlock({ ...parts, decoders, rows }),
    prefetch: (subject) => decoders.prefetch(subject, codec.schema),
  };
}

class RecordBlock<R> implements BlockBuilder {
  readonly #options: RecordBlockOptions<R>;
  readonly #notes = createTokenNotes();
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

interface DeferringOptions {
  /** Receives records that turn out to be unreadable only when their block is written. */
  deadLetters: Pick<Producer, 'send'>;
  /** Counts the outcome of a deferred record, which the stream has counted as taken. */
  countDeferred(kind: Outcome['kind']): void;
}

/** Step named in these dead letters; those of the stream name `transform`. */
const STEP = 'write';

/**
 * Creates a block that also takes records which cannot be read yet, because the registry is slow or the fences are not
 * loaded. `add` must not wait, and the record must not become a dead letter. So it is kept, and read when the block is
 * written, where waiting is allowed. Its offset is committed after that, so no record is skipped.
 */
export function createDeferringBlock(inner: BlockBuilder, options: DeferringOptions): BlockBuilder {
  const deferred: StreamRecord[] = [];
  let deferredBytes = 0;
  return {
    get rows() {
      return inner.rows + deferred.length;
    },
    get bytes() {
      return inner.bytes + deferredBytes;
    },
    add(record): Outcome {
      try {
        return inner.add(record);
      } catch (error) {
        if (!(error instanceof RetryableFault)) throw error;
        deferred.push(record);
        deferredBytes += record.value?.length ?? 0;
        return { kind: 'ok' };
      }
    },
    async write(block: BlockName, signal: AbortSignal) {
      for (let record = deferred[0]; record !== undefined; record = deferred[0]) {
        const outcome = addDeferred(inner, record);
        if (outcome.kind === 'deadLetter') await publishLetter(options.deadLetters, record, outcome.reason);
        options.countDeferred(outcome.kind);
        deferred.shift();
        deferredBytes -= record.value?.length ?? 0;
      }
      await inner.write(block, signal);
    },
    release() {
      inner.release();
    },
  };
}

/** @throws RetryableFault when the record still cannot be read; any other fault is a dead letter */
function addDeferred(inner: BlockBuilder, record: StreamRecord): Outcome {
  try {
    return inner.add(record);
  } catch (error) {
    if (error instanceof RetryableFault) throw error;
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: 'deadLetter', reason };
  }
}

/** Resolves when the dead letter is acknowledged. @throws RetryableFault when it is not */
async function publishLetter(producer: Pick<Producer, 'send'>, record: StreamRecord, reason: string): Promise<void> {
  try {
    await sendDeadLetters(producer, [{ record, reason }], STEP);
  } catch (error) {
    throw new RetryableFault('a dead letter is not acknowledged', { cause: error });
  }
}
