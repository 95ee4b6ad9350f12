import type { Logger, Metrics } from '@playline/runtime';
import { BlockPartition, type BlockPartitionOptions } from '../partitions/block-partition.ts';
import { RecordPartition } from '../partitions/record-partition.ts';
import { createStreamMetrics } from '../partitions/stream-metrics.ts';
import type { BatchHandler, BlockLimits, BlockSink, Producer, StreamRecord } from '../ports.ts';
import { type CommittedOffsets, MemoryConsumer } from './memory-consumer.ts';
import { MemoryTopics } from './memory-log.ts';
import { MemoryProducer } from './memory-producer.ts';

export type { MemoryConsumer } from './memory-consumer.ts';
export type { MemoryProducer } from './memory-producer.ts';

interface MemoryConsumerOptions {
  topics: readonly string[];
  /** Consumers of one group go on where the last one stopped; default one group for all. */
  groupId?: string;
  logger?: Logger;
  metrics?: Metrics;
}

/** A log in memory with the producer and the consumers of a service's unit tests. One consumer of a group at a time. */
export interface MemoryLog {
  /** Only for topics that differ from the others: a topic appears when it is used. */
  createTopic(topic: string, options: { partitions: number; recordBytesMax?: number }): void;
  openProducer(): MemoryProducer;
  openBlockConsumer(
    options: MemoryConsumerOptions & {
      sink: BlockSink;
      limits: BlockLimits;
      deadLetters?: Producer;
      withoutIntents?: boolean;
      waits?: BlockPartitionOptions['waits'];
    },
  ): MemoryConsumer;
  openRecordConsumer(options: MemoryConsumerOptions & BatchHandler): MemoryConsumer;
  /** Everything in a topic, by partition and offset. */
  records(topic: string): StreamRecord[];
  /** The group's committed offset; 0 when it has committed none. */
  committed(topic: string, partition: number, groupId?: string): number;
}

const GROUP = 'group';
/** No coordinator can expel the only member. */
const SESSION_TIMEOUT_MS = 3_600_000;

export function createMemoryLog({ partitions }: { partitions?: number } = {}): MemoryLog {
  const log = new MemoryTopics(partitions);
  const groups = new Map<string, CommittedOffsets>();
  const offsetsOf = (groupId = GROUP) => {
    const committed = groups.get(groupId) ?? new Map();
    groups.set(groupId, committed);
    return committed;
  };
  const openProducer = () => new MemoryProducer(log);
  return {
    createTopic: (topic, options) => log.createTopic(topic, options),
    openProducer,
    openBlockConsumer({ topics, groupId, sink, limits, logger, ...options }) {
      const metrics = createStreamMetrics(options.metrics);
      const { deadLetters = openProducer(), withoutIntents = false, waits } = options;
      const shared = { sink, limits, deadLetters, logger, metrics, withoutIntents, ...(waits && { waits }) };
      const openWorker = (partition: ConstructorParameters<typeof BlockPartition>[0]['log']) =>
        new BlockPartition({ ...shared, sessionTimeoutMs: SESSION_TIMEOUT_MS, log: partition });
      return new MemoryConsumer({ log, topics, committed: offsetsOf(groupId), metrics, openWorker });
    },
    openRecordConsumer(options) {
      const metrics = createStreamMetrics(options.metrics);
      const { topics, groupId, logger } = options;
      const openWorker = (partition: ConstructorParameters<typeof RecordPartition>[0]['log']) =>
        new RecordPartition({ handler: options, log: partition, logger, metrics });
      return new MemoryConsumer({ log, topics, committed: offsetsOf(groupId), metrics, openWorker });
    },
    records: (topic) => log.partitionsOf(topic).flat(),
    committed: (topic, partition, groupId) => offsetsOf(groupId).get(`${topic}/${partition}`)?.offset ?? 0,
  };
}
