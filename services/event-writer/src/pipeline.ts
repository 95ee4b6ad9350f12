import {
  accessKeyCodec,
  accountCodec,
  auditEntryCodec,
  collectionCodec,
  consentCodec,
  identityDecisionCodec,
  projectCodec,
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
  collectionAuditRows,
  consentRows,
  decisionRows,
  type EventStore,
  entryAuditRows,
  keyAuditRows,
  projectAuditRows,
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
  type SchemaRegistry,
} from '@playline/stream';
import { type BlockParts, type BlockStep, createBufferPool } from './steps/block-step.ts';
import { createCheckFences } from './steps/check-fences.ts';
import { createDeferringBlock } from './steps/defer-records.ts';
import { createWriteMessages } from './steps/write-messages.ts';
import { createWriteRecords } from './steps/write-records.ts';
import { createWriteRows } from './steps/write-rows.ts';

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
    writeRows: createWriteRows({ store, calls: createStoreCalls(metrics, 'event_writer') }),
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
    'event_writer_deferred_total',
    'Records read only when their block was written',
    ['outcome'],
  );
  const blankedTotal = metrics.counter(
    'event_writer_blanked_total',
    'Events stored without the anonymous id of somebody erased, which they carried',
  );
  return {
    countBlanked: () => blankedTotal.inc({}),
    countDeferred: (outcome: Outcome['kind']) => deferredTotal.inc({ outcome }),
  };
}
