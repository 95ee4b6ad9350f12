import { BlockPartition } from '../partitions/block-partition.ts';
import type { WhenExpired } from '../partitions/guarded-partition.ts';
import type { IntentPolicy } from '../partitions/intent.ts';
import { RecordPartition } from '../partitions/record-partition.ts';
import { createStreamMetrics } from '../partitions/stream-metrics.ts';
import type { BatchHandler, BlockLimits, BlockSink, Consumer, Producer } from '../ports.ts';
import type { GroupOptions, PartitionedOptions } from './consumer/partitioned-consumer.ts';

export type { GroupOptions } from './consumer/partitioned-consumer.ts';
export { type DeadLetterCountOptions, openDeadLetterCount } from './log/dead-letter-count.ts';
export { type AtomicPublisherOptions, openAtomicPublisher } from './log/open-atomic-publisher.ts';
export { openGroupOffsets } from './log/open-group-offsets.ts';
export { openLogReader, type ReadTopicOptions, readTopic } from './log/open-log-reader.ts';
export { readTopicSettings } from './log/topic-settings.ts';
export { ProduceFault } from './producer/broker-faults.ts';
export { openProducer, type ProducerOptions } from './producer/open-producer.ts';
export { createRegistryAdmin, createSchemaRegistry, type RegistryAdmin } from './schema-registry.ts';

/** Imports kafkajs only when the first consumer is started, because other processes do not need it. */
async function startConsumer(options: PartitionedOptions): Promise<Consumer> {
  const { PartitionedConsumer } = await import('./consumer/partitioned-consumer.ts');
  const consumer = new PartitionedConsumer(options);
  void consumer.run();
  return consumer;
}

export interface BlockConsumerOptions extends GroupOptions {
  sink: BlockSink;
  limits: BlockLimits;
  /** Publishes records that cannot be processed to `<topic>.dead`. */
  deadLetters: Producer;
  /** Defaults to `skip`, because rows are independent and expired records are lost in any case. */
  whenExpired?: WhenExpired;
  /** By default every block has an intent. Tests disable intents to show that rows are then duplicated. */
  intents?: IntentPolicy;
}

/**
 * Consumes topics in blocks, each of which is written exactly once. Resolves even if no broker responds; see `ready`.
 */
export async function openBlockConsumer(options: BlockConsumerOptions): Promise<Consumer> {
  const metrics = createStreamMetrics(options.metrics);
  const { sink, limits, deadLetters, sessionTimeoutMs, logger, intents } = options;
  const shared = { sink, limits, deadLetters, sessionTimeoutMs, logger, metrics, ...(intents && { intents }) };
  return await startConsumer({
    ...options,
    whenExpired: options.whenExpired ?? 'skip',
    streamMetrics: metrics,
    openWorker: (log, { retentionMsOf }) => new BlockPartition({ ...shared, log, retentionMsOf }),
  });
}

export type RecordConsumerOptions = GroupOptions &
  BatchHandler & {
    /** Defaults to `stop`, because a record may depend on any earlier record. */
    whenExpired?: WhenExpired;
  };

/** Consumes topics in order, one batch at a time per partition. Resolves even if no broker responds; see `ready`. */
export async function openRecordConsumer(options: RecordConsumerOptions): Promise<Consumer> {
  const metrics = createStreamMetrics(options.metrics);
  const { logger } = options;
  return await startConsumer({
    ...options,
    whenExpired: options.whenExpired ?? 'stop',
    streamMetrics: metrics,
    openWorker: (log) => new RecordPartition({ handler: options, log, logger, metrics }),
  });
}
