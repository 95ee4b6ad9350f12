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
  clearAnonymousId,
  collectionAuditRows,
  consentRows,
  createRowPlan,
  decisionRows,
  type EventStore,
  entryAuditRows,
  keyAuditRows,
  projectAuditRows,
  type RecordRows,
  RowTranscoder,
  rateLimitKeyAuditRows,
  rejectionRows,
  signableKeyAuditRows,
} from '@playline/events';
import type { Metrics } from '@playline/runtime';
import {
  type BlockBuilder,
  type BlockSink,
  createStoreCalls,
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
  type BlockStep,
  createBlockStep,
  createBufferPool,
  createWriteRows,
  FENCED,
  OK,
} from './steps/block-step.ts';

const TRANSFORM_VERSION = 1;

export interface PipelineOptions {
  store: EventStore;
  schemas: SchemaRegistry;
  fences: FenceSet;
  deadLetters: Producer;
  metrics: Metrics;
  topicPrefix: string;
  /** Number of shards among which the store divides events. Default: 1. */
  shards?: number | undefined;
  /** The block consumer's limit. Buffers of up to four times this size are reused. */
  blockBytesMax: number;
}

export interface Pipeline {
  readonly topics: readonly string[];
  /** Topics for the audit log. They have a separate consumer group, so that they cannot delay other topics. */
  readonly auditTopics: readonly string[];
  readonly sink: BlockSink;
  /** Requests the schemas of this release in advance, so that the first records do not wait. */
  prefetch(): Promise<void>;
}

/**
 * messages   -> transcode -> check fences -> write events
 * decisions  -> decode    -> check fences -> write identity_links, identity_overrides
 * consents   -> decode    -> check fences -> write consent_log
 * rejections -> decode                    -> write message_rejections (no fences, because rejections have no identity)
 * access     -> decode    -> derive       -> write audit_log
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { store, schemas, fences, deadLetters, metrics, topicPrefix } = options;
  const deferredTotal = metrics.counter(
    'playline_event_writer_deferred_total',
    'Records that could only be read when their block was written',
    ['outcome'],
  );
  const blankedTotal = metrics.counter(
    'playline_event_writer_blanked_total',
    'Events stored without an anonymous id that belongs to an erased person',
  );
  const parts: BlockParts = {
    schemas,
    checkFences: createCheckFences(fences, () => blankedTotal.inc({})),
    writeRows: createWriteRows({ store, calls: createStoreCalls(metrics), shards: options.shards }),
    pool: createBufferPool(options.blockBytesMax),
  };
  const toStepsByTopic = (steps: [topic: Topic, step: BlockStep][]) =>
    new Map(steps.map(([topic, step]) => [topicPrefix + topic.name, step]));
  const audit = toStepsByTopic(createAuditSteps(parts));
  const flows = toStepsByTopic([
    [TOPICS.messages, createWriteMessages(parts)],
    [TOPICS.identityDecisions, createWriteRecords(identityDecisionCodec, decisionRows, parts)],
    [TOPICS.consents, createWriteRecords(consentCodec, consentRows, parts)],
    [TOPICS.rejections, createWriteRecords(rejectionCodec, rejectionRows, parts)],
  ]);
  const steps = new Map([...flows, ...audit]);
  const countDeferred = (outcome: Outcome['kind']) => deferredTotal.inc({ outcome });
  return {
    topics: [...flows.keys()],
    auditTopics: [...audit.keys()],
    sink: {
      transformVersion: TRANSFORM_VERSION,
      openBlock(topic) {
        const step = steps.get(topic);
        if (step === undefined) throw new Error(`the pipeline has no step for topic ${topic}`);
        return createDeferringBlock(step.openBlock(), { deadLetters, countDeferred });
      },
    },
    prefetch: async () => {
      await Promise.all([...steps].map(([topic, step]) => step.prefetch(schemaSubjectOf(topic))));
    },
  };
}

const createAuditSteps = (parts: BlockParts): [topic: Topic, step: BlockStep][] => [
  [TOPICS.projects, createWriteRecords(projectCodec, projectAuditRows, parts)],
  [TOPICS.accessKeys, createWriteRecords(accessKeyCodec, keyAuditRows, parts)],
  [TOPICS.rateLimitKeys, createWriteRecords(rateLimitKeyCodec, rateLimitKeyAuditRows, parts)],
  [TOPICS.collections, createWriteRecords(collectionCodec, collectionAuditRows, parts)],
  [TOPICS.accounts, createWriteRecords(accountCodec, accountAuditRows, parts)],
  [TOPICS.signableKeys, createWriteRecords(signableKeyCodec, signableKeyAuditRows, parts)],
  [TOPICS.audit, createWriteRecords(auditEntryCodec, entryAuditRows, parts)],
];

/** Creates the step for `audience.messages`: transcodes records, checks fences and writes rows. */
function createWriteMessages(parts: BlockParts): BlockStep {
  // Blocks are filled one record at a time, so they can share a transcoder.
  const transcoder = new RowTranscoder();
  return createBlockStep(parts, {
    tables: ['events'],
    schema: messageRecordCodec.schema,
    createReader: createRowPlan,
    addRows([events], plan, record) {
      transcoder.add(events!, plan, record);
      const verdict = parts.checkFences.checkRow(transcoder.head);
      if (verdict === 'blank') clearAnonymousId(events!);
      return verdict === 'drop' ? FENCED : OK;
    },
  });
}

/** Creates the step for topics with few records: decodes records to objects, checks fences and writes rows. */
function createWriteRecords<R>(codec: RecordCodec<R>, { tables }: RecordRows<R>, parts: BlockParts): BlockStep {
  return createBlockStep(parts, {
    tables: tables.map(({ table }) => table),
    schema: codec.schema,
    createReader: codec.decoderOf,
    addRows(buffers, decode, record) {
      const decoded = decode(record.value.subarray(FRAME_BYTES));
      const allowed = tables.map((table) => table.withoutFenced(decoded, parts.checkFences.isFenced));
      for (const [index, { addRows }] of tables.entries()) {
        const part = allowed[index];
        if (part != null) addRows(buffers[index]!, part, record);
      }
      return allowed.every((part) => part === null) ? FENCED : OK;
    },
  });
}

interface DeferringOptions {
  /** Receives deferred records that are unreadable. */
  deadLetters: Pick<Producer, 'send'>;
  /** Counts the outcome of a deferred record, which the stream has already counted as accepted. */
  countDeferred(kind: Outcome['kind']): void;
}

/** Step name in the headers of these dead letters. The stream's dead letters contain `transform`. */
const STEP = 'write';

/**
 * Wraps a block so that it also accepts records that cannot be read yet, because the registry is slow or the fences are
 * not loaded. `add` must not wait, and a record that is only unreadable for now must not become a dead letter. Deferred
 * records are read when the block is written, before their offsets are committed.
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
    add(record) {
      try {
        return inner.add(record);
      } catch (error) {
        if (!(error instanceof RetryableFault)) throw error;
        deferred.push(record);
        deferredBytes += record.value?.length ?? 0;
        return OK;
      }
    },
    async write(block, signal) {
      for (let record = deferred[0]; record !== undefined; record = deferred[0]) {
        const outcome = addDeferred(inner, record);
        if (outcome.kind === 'deadLetter')
          await sendDeadLetters(options.deadLetters, [{ record, reason: outcome.reason }], STEP).catch((cause) => {
            throw new RetryableFault('a dead letter was not acknowledged', { cause });
          });
        options.countDeferred(outcome.kind);
        deferred.shift();
        deferredBytes -= record.value?.length ?? 0;
      }
      await inner.write(block, signal);
    },
    release: () => inner.release(),
  };
}

/** Adds a deferred record, or returns a dead letter. @throws RetryableFault if the record cannot be read yet */
function addDeferred(inner: BlockBuilder, record: StreamRecord): Outcome {
  try {
    return inner.add(record);
  } catch (error) {
    if (error instanceof RetryableFault) throw error;
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return { kind: 'deadLetter', reason };
  }
}
