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
  /** A consumer continues where the previous consumer in its group stopped. By default, all consumers share a group. */
  groupId?: string;
  whenExpired?: WhenExpired;
  logger?: Logger;
  metrics?: Metrics;
}

/** An in-memory log with producers and consumers, for unit tests of services. Groups have one consumer at a time. */
export interface MemoryLog {
  /** Creates a topic with special options. Other topics are created when they are first used. */
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
  records(topic: string): StreamRecord[];
  /** Removes all records from an offset on, as after a power failure of a single broker. */
  truncate(topic: string, partition: number, end: number): void;
  /** Removes all records before an offset, like retention. */
  expire(topic: string, partition: number, start: number): void;
  /** Deletes a topic with its groups' commits, and recreates the topic with offsets from 0. */
  recreate(topic: string): void;
  /** Decides where a group continues in a replaced log, like an operator. */
  decide(decision: { topic: string; partition: number; from: number; groupId?: string }): void;
  /** Commits an offset like another tool. */
  moveCommit(at: { topic: string; partition: number; offset: number; metadata?: string }): void;
  /**
   * Rejects every commit with this fault, like an unavailable broker or a missing grant. Null accepts commits again.
   */
  refuseCommits(fault: Error | null): void;
  committed(topic: string, partition: number, groupId?: string): number;
}

const GROUP = 'group';
/** Long, because there is no coordinator that could remove a member. */
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

function recreate(topic: string, log: MemoryTopics, groups: ReadonlyMap<string, CommittedOffsets>): void {
  const names = log.partitionsOf(topic).map((_, partition) => `${topic}/${partition}`);
  for (const offsets of groups.values()) for (const name of names) offsets.delete(name);
  log.recreate(topic);
}

function entryOf<V>(groups: Map<string, Map<string, V>>, groupId = GROUP): Map<string, V> {
  const state = groups.get(groupId) ?? new Map<string, V>();
  groups.set(groupId, state);
  return state;
}

export function createMemoryLog({ partitions }: { partitions?: number } = {}): MemoryLog {
  const log = new MemoryTopics(partitions);
  const groups = new Map<string, CommittedOffsets>();
  const decisions = new Map<string, Map<string, OffsetDecision>>();
  const decisionsOf = (groupId?: string) => entryOf(decisions, groupId);
  const offsetsOf = (groupId?: string) => entryOf(groups, groupId);
  const toSharedOptions = ({ topics, groupId, logger }: MemoryConsumerOptions) => ({
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
      const overrides = { ...(intents && { intents }), ...(waits && { waits }) };
      const shared = { sink, limits, deadLetters, logger, metrics, ...overrides };
      const openWorker = (partition: LogPartition) =>
        new BlockPartition({ ...shared, sessionTimeoutMs: SESSION_TIMEOUT_MS, log: partition });
      const whenExpired = options.whenExpired ?? 'skip';
      return new MemoryConsumer({ ...toSharedOptions(options), metrics, whenExpired, openWorker });
    },
    openRecordConsumer(options) {
      const metrics = createStreamMetrics(options.metrics);
      const { logger, waits } = options;
      const openWorker = (partition: LogPartition) =>
        new RecordPartition({ handler: options, log: partition, logger, metrics, ...(waits && { waits }) });
      const whenExpired = options.whenExpired ?? 'stop';
      return new MemoryConsumer({ ...toSharedOptions(options), metrics, whenExpired, openWorker });
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
