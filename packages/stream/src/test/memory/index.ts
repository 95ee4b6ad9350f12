import type { Logger, Metrics } from '@playline/runtime';
import type { BlockPartitionOptions } from '../../partitions/block-partition.ts';
import { BlockPartition } from '../../partitions/block-partition.ts';
import type { WhenExpired } from '../../partitions/guarded-partition.ts';
import { type IntentPolicy, parseRead } from '../../partitions/intent.ts';
import type { LogPartition } from '../../partitions/log-partition.ts';
import type { OffsetDecision } from '../../partitions/offset-decision.ts';
import { RecordPartition, type RecordPartitionOptions } from '../../partitions/record-partition.ts';
import { createStreamMetrics } from '../../partitions/stream-metrics.ts';
import type { BatchHandler, BlockLimits, BlockSink, Producer, StreamRecord } from '../../ports.ts';
import { type CommittedOffsets, MemoryConsumer } from './memory-consumer.ts';
import { MemoryTopics } from './memory-log.ts';
import { MemoryProducer } from './memory-producer.ts';

export type { MemoryConsumer } from './memory-consumer.ts';
export type { MemoryProducer } from './memory-producer.ts';

interface MemoryConsumerOptions {
  topics: readonly string[];
  /** A consumer continues where the previous consumer of its group stopped. Default: the same group for all. */
  groupId?: string;
  /** As in Kafka consumers. */
  whenExpired?: WhenExpired;
  logger?: Logger;
  metrics?: Metrics;
}

/** A log in memory with producers and consumers for unit tests of services. One consumer per group at a time. */
export interface MemoryLog {
  /** Only needed for topics with special options: other topics are created at their first use. */
  createTopic(topic: string, options: { partitions: number; recordBytesMax?: number }): void;
  openProducer(): MemoryProducer;
  openBlockConsumer(
    options: MemoryConsumerOptions & {
      sink: BlockSink;
      limits: BlockLimits;
      deadLetters?: Producer;
      intents?: IntentPolicy;
      waits?: BlockPartitionOptions['waits'];
    },
  ): MemoryConsumer;
  openRecordConsumer(
    options: MemoryConsumerOptions & BatchHandler & { waits?: RecordPartitionOptions['waits'] },
  ): MemoryConsumer;
  /** All records in a topic, by partition and offset. */
  records(topic: string): StreamRecord[];
  /** Removes all records from an offset on, like a power failure of a single broker. */
  truncate(topic: string, partition: number, end: number): void;
  /** Removes all records before an offset, as retention does. */
  expire(topic: string, partition: number, start: number): void;
  /** Deletes a topic with the commits of its groups, and recreates it: offsets restart at 0. */
  recreate(topic: string): void;
  /** Decides like an operator where a group continues in a replaced log. */
  decide(decision: { topic: string; partition: number; from: number; groupId?: string }): void;
  /** Commits an offset like another tool. */
  moveCommit(at: { topic: string; partition: number; offset: number; metadata?: string }): void;
  /**
   * Refuses every commit with this fault, like an unavailable broker or a missing grant; null accepts commits again.
   */
  refuseCommits(fault: Error | null): void;
  /** The group's committed offset; 0 without a commit. */
  committed(topic: string, partition: number, groupId?: string): number;
}

const GROUP = 'group';
/** Long, because there is no coordinator that could expel a member. */
const SESSION_TIMEOUT_MS = 3_600_000;

function decide(
  { topic, partition, from }: { topic: string; partition: number; from: number },
  offsets: CommittedOffsets,
  decisions: Map<string, OffsetDecision>,
): void {
  const name = `${topic}/${partition}`;
  const { offset: committed, metadata } = offsets.get(name) ?? { offset: 0, metadata: '' };
  const forCommit = { committed, mark: parseRead(committed, metadata).mark };
  decisions.set(name, { from, forCommit, decidedAtMs: Date.now(), replaced: [] });
}

/** Also deletes the topic's commits, as brokers do. */
function recreate(topic: string, log: MemoryTopics, groups: ReadonlyMap<string, CommittedOffsets>): void {
  const names = log.partitionsOf(topic).map((_, partition) => `${topic}/${partition}`);
  for (const offsets of groups.values()) for (const name of names) offsets.delete(name);
  log.recreate(topic);
}

/** The state of a group, created at its first use. */
function entryOf<V>(groups: Map<string, Map<string, V>>, groupId = GROUP): Map<string, V> {
  const found = groups.get(groupId) ?? new Map<string, V>();
  groups.set(groupId, found);
  return found;
}

export function createMemoryLog({ partitions }: { partitions?: number } = {}): MemoryLog {
  const log = new MemoryTopics(partitions);
  const groups = new Map<string, CommittedOffsets>();
  const decisions = new Map<string, Map<string, OffsetDecision>>();
  const decisionsOf = (groupId?: string) => entryOf(decisions, groupId);
  const offsetsOf = (groupId?: string) => entryOf(groups, groupId);
  /** Options shared by all consumers of a group. */
  const shareOf = ({ topics, groupId, logger }: MemoryConsumerOptions) => ({
    log,
    topics,
    logger,
    groupId: groupId ?? GROUP,
    committed: offsetsOf(groupId),
    decisions: decisionsOf(groupId),
    commitFault: () => commitFault,
  });
  let commitFault: Error | null = null;
  const openProducer = () => new MemoryProducer(log);
  return {
    createTopic: (topic, options) => log.createTopic(topic, options),
    openProducer,
    openBlockConsumer(options) {
      const metrics = createStreamMetrics(options.metrics);
      const { sink, limits, logger, deadLetters = openProducer(), intents, waits } = options;
      const kept = { ...(intents && { intents }), ...(waits && { waits }) };
      const shared = { sink, limits, deadLetters, logger, metrics, ...kept };
      const openWorker = (partition: LogPartition) =>
        new BlockPartition({ ...shared, sessionTimeoutMs: SESSION_TIMEOUT_MS, log: partition });
      const whenExpired = options.whenExpired ?? 'skip';
      return new MemoryConsumer({ ...shareOf(options), metrics, whenExpired, openWorker });
    },
    openRecordConsumer(options) {
      const metrics = createStreamMetrics(options.metrics);
      const { logger, waits } = options;
      const openWorker = (partition: LogPartition) =>
        new RecordPartition({ handler: options, log: partition, logger, metrics, ...(waits && { waits }) });
      const whenExpired = options.whenExpired ?? 'stop';
      return new MemoryConsumer({ ...shareOf(options), metrics, whenExpired, openWorker });
    },
    truncate: (topic, partition, end) => log.truncate(topic, partition, end),
    expire: (topic, partition, start) => log.expire(topic, partition, start),
    moveCommit: ({ topic, partition, offset, metadata = '' }) =>
      void offsetsOf().set(`${topic}/${partition}`, { offset, metadata }),
    refuseCommits(fault) {
      commitFault = fault;
    },
    recreate: (topic) => recreate(topic, log, groups),
    decide: ({ groupId, ...at }) => decide(at, offsetsOf(groupId), decisionsOf(groupId)),
    records: (topic) => log.partitionsOf(topic).flat(),
    committed: (topic, partition, groupId) => offsetsOf(groupId).get(`${topic}/${partition}`)?.offset ?? 0,
  };
}
