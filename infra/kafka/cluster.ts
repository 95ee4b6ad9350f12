import type { Admin } from 'kafkajs';

/** What stands in a cluster before anything is changed. */
export interface Cluster {
  /** Brokers that there are, also those that are away now but keep a replica of a topic asked for. */
  readonly brokers: number;
  readonly topics: ReadonlyMap<string, { name: string; partitions: number; replicationFactor: number }>;
}

/**
 * Reads the cluster and those of these topics that there are.
 *
 * A broker that is being restarted is not listed; topics made meanwhile must have a replica on it all the same, and their
 * making shall rather fail than give them fewer.
 */
export async function readCluster(admin: Admin, names: readonly string[]): Promise<Cluster> {
  const { brokers } = await admin.describeCluster();
  const asked = (await admin.listTopics()).filter((name) => names.includes(name));
  // Without a name the client asks for all topics.
  const { topics } = asked.length === 0 ? { topics: [] } : await admin.fetchTopicMetadata({ topics: asked });
  const ids = new Set(brokers.map(({ nodeId }) => nodeId));
  for (const { partitions } of topics) for (const { replicas } of partitions) for (const id of replicas) ids.add(id);
  const standing = topics.map(({ name, partitions }) => {
    // The weakest partition says what the topic promises.
    const replicationFactor = Math.min(...partitions.map(({ replicas }) => replicas.length));
    return [name, { name, partitions: partitions.length, replicationFactor }] as const;
  });
  return { brokers: ids.size, topics: new Map(standing) };
}
