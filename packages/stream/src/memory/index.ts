import type { Logger, Metrics } from '@playline/runtime';
import type { BlockPartitionOptions } from '../partitions/block-options.ts';
import { BlockPartition } from '../partitions/block-partition.ts';
import type { WhenExpired } from '../partitions/guarded-partition.ts';
import { type IntentPolicy, parseRead } from '../partitions/intent.ts';
import type { LogPartition } from '../partitions/log-partition.ts';
import type { OffsetDecision } from '../partitions/offset-decision.ts';
import { RecordPartition, type RecordPartitionOptions } from '../partitions/record-partition.ts';
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
  /** As of the consumers on real brokers. */
  whenExpired?: WhenExpired;
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
      intents?: IntentPolicy;
      waits?: BlockPartitionOptions['waits'];
    },
  ): MemoryConsumer;
  openRecordConsumer(
    options: MemoryConsumerOptions & BatchHandler & { waits?: RecordPartitionOptions['waits'] },
  ): MemoryConsumer;
  /** Everything in a topic, by partition and offset. */
  records(topic: string): StreamRecord[];
  /** Loses everything from an offset on, as a lone broker does whose machine loses power. */
  truncate(topic: string, partition: number, end: number): void;
  /** Loses everything before an offset, as retention does. */
  expire(topic: string, partition: number, start: number): void;
  /** Deletes a topic, and what groups have committed of it, and makes it anew: its offsets begin again. */
  remake(topic: string): void;
  /** Decides, as an operator does, where a group goes on with a log that was replaced. */
  decide(decision: { topic: string; partition: number; from: number; groupId?: string }): void;
  /** Commits an offset as a foreign tool does: without a word beside it. */
  moveCommit(at: { topic: string; partition: number; offset: number; metadata?: string }): void;
  /** Refuses every commit with this fault, as a broker does that is away or grants nothing; null takes them again. */
  refuseCommits(fault: Error | null): void;
  /** The group's committed offset; 0 when it has committed none. */
  committed(topic: string, partition: number, groupId?: string): number;
}

const GROUP = 'group';
/** No coordinator can expel the only member. */
const SESSION_TIMEOUT_MS = 3_600_000;

function decide(
  { topic, partition, from }: { topic: string; partition: number; from: number },
  offsets: CommittedOffsets,
  decisions: Map<string, OffsetDecision>,
): void {
  const name = `${topic}/${partition}`;
  const { offset: committed, metadata } = offsets.get(name) ?? { offset: 0, metadata: '' };
  const answers = { committed, mark: parseRead(committed, metadata).mark };
  decisions.set(name, { from, answers, decidedAtMs: Date.now(), replaced: [] });
}

/** As brokers do, which delete commits with their topic. */
function remake(topic: string, log: MemoryTopics, groups: ReadonlyMap<string, CommittedOffsets>): void {
  const names = log.partitionsOf(topic).map((_, partition) => `${topic}/${partition}`);
  for (const offsets of groups.values()) for (const name of names) offsets.delete(name);
  log.remake(topic);
}

/** What is kept of a group, from the first question on. */
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
  /** What every consumer of a group is given. */
  const shareOf = ({ topics, groupId, logger }: MemoryConsumerOptions) => ({
    ...{ log, topics, logger, groupId: groupId ?? GROUP },
    ...{ committed: offsetsOf(groupId), decisions: decisionsOf(groupId), commitFault: () => commitFault },
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
      const whenExpired = options.whenExpired ?? 'passOver';
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
    remake: (topic) => remake(topic, log, groups),
    decide: ({ groupId, ...at }) => decide(at, offsetsOf(groupId), decisionsOf(groupId)),
    records: (topic) => log.partitionsOf(topic).flat(),
    committed: (topic, partition, groupId) => offsetsOf(groupId).get(`${topic}/${partition}`)?.offset ?? 0,
  };
}
