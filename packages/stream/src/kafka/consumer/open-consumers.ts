import { BlockPartition } from '../../partitions/block-partition.ts';
import type { WhenExpired } from '../../partitions/guarded-partition.ts';
import type { IntentPolicy } from '../../partitions/intent.ts';
import { RecordPartition } from '../../partitions/record-partition.ts';
import { createStreamMetrics } from '../../partitions/stream-metrics.ts';
import type { BatchHandler, BlockLimits, BlockSink, Consumer, Producer } from '../../ports.ts';
import type { GroupOptions } from './group-options.ts';
import { PartitionedConsumer } from './partitioned-consumer.ts';

export interface BlockConsumerOptions extends GroupOptions {
  sink: BlockSink;
  limits: BlockLimits;
  /** Takes records that cannot be processed to `<topic>.dead`. */
  deadLetters: Producer;
  /** Default `passOver`: a row more or less says nothing about the others, and those records are gone either way. */
  whenExpired?: WhenExpired;
  /** Default: all of them. Tests hand in a policy that keeps none, to see rows doubled. */
  intents?: IntentPolicy;
}

/**
 * Consumes topics in blocks that are written exactly once into a store that drops a token it has seen.
 * Resolves at once, also while no broker answers: `ready` tells.
 */
export async function openBlockConsumer(options: BlockConsumerOptions): Promise<Consumer> {
  const metrics = createStreamMetrics(options.metrics);
  const { sink, limits, deadLetters, sessionTimeoutMs, logger, intents } = options;
  const shared = { sink, limits, deadLetters, sessionTimeoutMs, logger, metrics, ...(intents && { intents }) };
  const consumer = new PartitionedConsumer({
    ...options,
    whenExpired: options.whenExpired ?? 'passOver',
    streamMetrics: metrics,
    openWorker: (log, { retentionMsOf }) => new BlockPartition({ ...shared, log, retentionMsOf }),
  });
  void consumer.run();
  return consumer;
}

export type RecordConsumerOptions = GroupOptions &
  BatchHandler & {
    /** Default `stop`: who takes records in order may depend on each of them. */
    whenExpired?: WhenExpired;
  };

/**
 * Consumes topics record by record in order, one batch at a time per partition; committed when the batch is done.
 * Resolves at once, also while no broker answers: `ready` tells.
 */
export async function openRecordConsumer(options: RecordConsumerOptions): Promise<Consumer> {
  const metrics = createStreamMetrics(options.metrics);
  const { logger } = options;
  const consumer = new PartitionedConsumer({
    ...options,
    whenExpired: options.whenExpired ?? 'stop',
    streamMetrics: metrics,
    openWorker: (log) => new RecordPartition({ handler: options, log, logger, metrics }),
  });
  void consumer.run();
  return consumer;
}
