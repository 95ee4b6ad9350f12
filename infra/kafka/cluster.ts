import type { Admin, ITopicMetadata } from 'kafkajs';
import { readMetadata, retryTemporary } from './leaders.ts';

/** Brokers and topics of a cluster. */
export interface Cluster {
  /** Number of brokers. Absent ones count when they have a replica of one of these topics. */
  readonly brokers: number;
  readonly topics: ReadonlyMap<string, { name: string; partitions: number; replicationFactor: number }>;
}

/**
 * Reads the cluster and those of these topics that exist.
 *
 * The cluster does not list a broker that is restarting. It still counts: it is better that creating a topic with a
 * replica on it fails than that the topic gets fewer replicas.
 */
export async function readCluster(admin: Admin, names: readonly string[]): Promise<Cluster> {
  const { brokers } = await admin.describeCluster();
  const asked = (await admin.listTopics()).filter((name) => names.includes(name));
  // Without topic names the client would ask for all topics.
  const topics = asked.length === 0 ? [] : await retryTemporary(() => readMetadata(admin, asked));
  const ids = new Set(brokers.map(({ nodeId }) => nodeId));
  for (const { partitions } of topics) for (const { replicas } of partitions) for (const id of replicas) ids.add(id);
  return { brokers: ids.size, topics: toStandingTopics(topics) };
}

/** What the brokers tell of topics, by name. */
export function toStandingTopics(topics: readonly ITopicMetadata[]): Cluster['topics'] {
  const standing = topics.map(({ name, partitions }) => {
    // A topic guarantees only as much as its weakest partition.
    const replicationFactor = partitions
      .map(({ replicas }) => replicas.length)
      .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
    return [name, { name, partitions: partitions.length, replicationFactor }] as const;
  });
  return new Map(standing);
}
