import { waitAtMost } from '@playline/stores';
import type { Cluster } from 'kafkajs';
import { atMostEvery } from '../at-most-every.ts';

/** Minimum interval between requests. Metrics may be scraped more often. */
const ENDS_INTERVAL_MS = 5_000;
/** Time limit for a scrape, which must not hang if the brokers hang. */
const ENDS_TIMEOUT_MS = 1_000;

/** Returns the start offset of each partition, or the end offset. */
export async function readOffsets(
  cluster: Pick<Cluster, 'fetchTopicsOffset'>,
  query: { topic: string; partitions: readonly number[]; first: boolean },
): Promise<Map<number, number>> {
  const partitions = query.partitions.map((partition) => ({ partition }));
  const found = await cluster.fetchTopicsOffset([{ topic: query.topic, partitions, fromBeginning: query.first }]);
  const offsets = found.find(({ topic }) => topic === query.topic)?.partitions ?? [];
  return new Map(offsets.map(({ partition, offset }) => [partition, Number(offset)]));
}

interface AssignedLog {
  readonly log: { readonly topic: string; readonly partition: number };
  end: number;
}

/**
 * Creates a function that updates the ends of assigned logs, with one request at a time and at most every 5 s. The
 * function resolves within 1 s. After a fault, the last ends are retained.
 */
export function createEndsReader(
  cluster: Pick<Cluster, 'fetchTopicsOffset'>,
  assigned: () => readonly AssignedLog[],
): () => Promise<void> {
  const request = atMostEvery(ENDS_INTERVAL_MS, async () => {
    const logs = assigned();
    for (const topic of new Set(logs.map(({ log }) => log.topic))) {
      const inTopic = logs.filter(({ log }) => log.topic === topic);
      const partitions = inTopic.map(({ log }) => log.partition);
      const ends = await readOffsets(cluster, { topic, partitions, first: false });
      // A fetch may already have returned a later end.
      for (const each of inTopic) each.end = Math.max(each.end, ends.get(each.log.partition) ?? 0);
    }
  });
  return () => waitAtMost(ENDS_TIMEOUT_MS, request(), () => {});
}

/** kafkajs itself detects a new partition only after five minutes. */
const PARTITIONS_INTERVAL_MS = 5_000;

/** Members of the kafkajs cluster that the kafkajs types omit. */
interface MetadataCluster extends Pick<Cluster, 'refreshMetadata' | 'findTopicPartitionMetadata'> {
  metadata(query: { topics: readonly string[] }): Promise<{
    topicMetadata: { topic: string; partitionMetadata: unknown[] }[];
  }>;
}

/**
 * Creates a function that checks for new partitions at most every 5 s and never throws. Metadata is refreshed only if
 * there are new partitions, because a refresh fails for all partitions while one of them has no leader.
 */
export function createPartitionCheck(cluster: Cluster, topics: readonly string[]): () => Promise<void> {
  const { metadata } = cluster as unknown as MetadataCluster;
  let checkedAtMs = performance.now();
  return async () => {
    if (performance.now() - checkedAtMs < PARTITIONS_INTERVAL_MS) return;
    checkedAtMs = Number.POSITIVE_INFINITY;
    try {
      const { topicMetadata } = await metadata.call(cluster, { topics });
      const hasGrown = topicMetadata.some(
        ({ topic, partitionMetadata }) => partitionMetadata.length > cluster.findTopicPartitionMetadata(topic).length,
      );
      // The next fetch then rejoins the group.
      if (hasGrown) await cluster.refreshMetadata();
    } catch {
      // Retried by the next check.
    }
    checkedAtMs = performance.now();
  };
}
