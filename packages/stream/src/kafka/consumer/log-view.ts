import type { Cluster } from 'kafkajs';
import type { LogMark } from '../../partitions/log-mark.ts';
import { decisionGroupOf, type OffsetDecision, parseDecision } from '../../partitions/offset-decision.ts';
import { ONE_BATCH_BYTES, READ_UNCOMMITTED } from '../protocol.ts';
import type { Coordinator } from './kafkajs-overrides.ts';
import { readOffsets } from './log-ends.ts';
import type { FetchedRecords } from './record-decoding.ts';
import { type FetchRequest, fetchByTopicId } from './topic-id-wire.ts';

export interface LogView {
  offsets(query: { topic: string; partitions: readonly number[]; first: boolean }): Promise<Map<number, number>>;
  coordinator(groupId: string): Promise<Coordinator>;
  /**
   * Returns the current ID of a topic from a partition's leader, or null if the brokers report no IDs.
   * @throws Error while the partition has no leader
   */
  topicId(at: { topic: string; partition: number }): Promise<string | null>;
  pin(at: { topic: string; partition: number }, topicId: string | null): void;
  /**
   * Returns the batch that contains an offset, or null if the log has no such batch.
   * @throws TopicDeleted if the topic with this ID no longer exists; another fault while the leader does not respond
   */
  batchAt(at: BatchLocation): Promise<LogMark | null>;
  decision(groupId: string, at: { topic: string; partition: number }): Promise<OffsetDecision | null>;
  refresh(): Promise<void>;
}

interface BatchLocation {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The topic's ID when the partition was examined. */
  readonly topicId: string | null;
}

/** Members of the kafkajs cluster that the kafkajs types omit. */
type FullCluster = Omit<Cluster, 'findBroker' | 'findGroupCoordinator' | 'findLeaderForPartitions'> & {
  findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>;
  findBroker(at: { nodeId: string }): Promise<{
    fetch(request: FetchRequest): Promise<{ responses: { partitions: { messages: FetchedRecords }[] }[] }>;
  }>;
  findGroupCoordinator(query: { groupId: string }): Promise<Coordinator>;
};

const FETCH_WAIT_MS = 100;

export function createLogView(kafkajsCluster: Cluster): LogView {
  const cluster = kafkajsCluster as unknown as FullCluster;
  const offsets: LogView['offsets'] = (query) => readOffsets(cluster, query);
  const topicIds = fetchByTopicId(kafkajsCluster);

  const leaderOf = async (topic: string, partition: number) => {
    const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]));
    if (nodeId === undefined) throw new Error(`${topic}/${partition} has no leader`);
    return await cluster.findBroker({ nodeId });
  };

  const fetchOne = async ({ topic, partition, offset, topicId }: BatchLocation) => {
    const broker = await leaderOf(topic, partition);
    const requested = { partition, fetchOffset: String(offset), maxBytes: ONE_BATCH_BYTES };
    const partitions = [topicId === null ? requested : { ...requested, topicId }];
    // The batch was read before, so its transaction has ended.
    const limits = { maxWaitTime: FETCH_WAIT_MS, minBytes: 1, maxBytes: ONE_BATCH_BYTES };
    const topics = [{ topic, partitions }];
    const { responses } = await broker.fetch({ ...limits, isolationLevel: READ_UNCOMMITTED, topics });
    return responses[0]?.partitions[0]?.messages.batches?.[0] ?? null;
  };

  return {
    offsets,
    // Read from the leader, because new topics are first visible there.
    topicId: async ({ topic, partition }) => await topicIds.fetchId(topic, await leaderOf(topic, partition)),
    pin: topicIds.pin,
    coordinator: (groupId) => cluster.findGroupCoordinator({ groupId }),
    async batchAt(at) {
      try {
        const found = await fetchOne(at);
        if (found !== null) return found;
      } catch (fault) {
        if ((fault as Error).name !== 'KafkaJSOffsetOutOfRange') throw fault;
      }
      const { topic, partition, offset } = at;
      const ends = await offsets({ topic, partitions: [partition], first: false });
      const starts = await offsets({ topic, partitions: [partition], first: true });
      // A newly elected leader may not return the batch yet.
      if (offset >= (starts.get(partition) ?? 0) && offset < (ends.get(partition) ?? 0))
        throw new Error(`${topic}/${partition} does not return offset ${offset} yet`);
      return null;
    },
    async decision(group, { topic, partition }) {
      const groupId = decisionGroupOf(group);
      const coordinator = await cluster.findGroupCoordinator({ groupId });
      const topics = [{ topic, partitions: [{ partition }] }];
      const { responses } = await coordinator.offsetFetch({ groupId, topics });
      const found = responses[0]?.partitions[0];
      return found === undefined ? null : parseDecision(Number(found.offset), found.metadata);
    },
    refresh: () => kafkajsCluster.refreshMetadata(),
  };
}
