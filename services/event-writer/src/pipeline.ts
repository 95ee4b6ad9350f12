import { identityDecisionCodec, TOPICS } from '@playline/contracts';
import { createRowPlan, type EventStore } from '@playline/events';
import type { Metrics } from '@playline/runtime';
import type { BlockBuilder, BlockSink, Producer } from '@playline/stream';
import { createBufferPool } from './blocks/buffer-pool.ts';
import { createDecisionBlocks } from './blocks/decision-block.ts';
import { createDeferringBlock } from './blocks/deferring-block.ts';
import { createMessageBlocks } from './blocks/message-block.ts';
import type { Fences } from './fences.ts';
import { createSchemaReaders, type SchemaSource } from './schema-readers.ts';
import { createCheckFences } from './steps/check-fences.ts';
import { createPublishDeadLetter } from './steps/publish-dead-letter.ts';
import { createWriteRows } from './steps/write-rows.ts';
import { createWriterMetrics } from './writer-metrics.ts';

/** Raised when the same record gives other rows; the version before must then stay in `olderVersions` for a release. */
const TRANSFORM_VERSION = 1;

export interface PipelineOptions {
  store: EventStore;
  schemas: SchemaSource;
  fences: Fences;
  deadLetters: Producer;
  metrics: Metrics;
  topicPrefix: string;
  /** As the block consumer's; buffers a little larger are kept for the next block. */
  blockBytesMax: number;
}

/** The whole flow: which topics are read and what becomes of their records. */
export interface Pipeline {
  readonly topics: readonly string[];
  readonly sink: BlockSink;
  /** Asks for the latest schemas, so that the first records need not wait. */
  prefetch(): Promise<void>;
}

/**
 * messages  -> transcode -> check fences -> write events
 * decisions -> decode    -> check fences -> write identity_links, identity_overrides
 */
export function createPipeline(options: PipelineOptions): Pipeline {
  const { store, schemas: source, fences, metrics, topicPrefix, blockBytesMax } = options;
  const messages = topicPrefix + TOPICS.messages.name;
  const decisions = topicPrefix + TOPICS.identityDecisions.name;

  const plans = createSchemaReaders({ source, createReader: createRowPlan });
  const decoders = createSchemaReaders({ source, createReader: identityDecisionCodec.decoderOf });
  const writerMetrics = createWriterMetrics(metrics);
  const shared = {
    checkFences: createCheckFences(fences),
    writeRows: createWriteRows({ store, metrics: writerMetrics }),
    // A buffer doubles until a block fits, and a block ends with the record that passes its limit.
    pool: createBufferPool(4 * blockBytesMax),
  };
  const openMessageBlock = createMessageBlocks({ plans, ...shared });
  const openDecisionBlock = createDecisionBlocks({ decoders, ...shared });
  const deferring = (block: BlockBuilder) =>
    createDeferringBlock(block, {
      publishDeadLetter: createPublishDeadLetter(options.deadLetters),
      countDeferred: writerMetrics.countDeferred,
    });

  return {
    topics: [messages, decisions],
    sink: {
      transformVersion: TRANSFORM_VERSION,
      openBlock(topic, _partition, transformVersion = TRANSFORM_VERSION) {
        if (topic === messages) return deferring(openMessageBlock(transformVersion));
        if (topic === decisions) return deferring(openDecisionBlock(transformVersion));
        throw new Error(`no step reads ${topic}`);
      },
    },
    prefetch: async () => {
      await Promise.all([plans.prefetch(`${messages}-value`), decoders.prefetch(`${decisions}-value`)]);
    },
  };
}
