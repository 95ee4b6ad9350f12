import { waitAtMost } from '@playline/stores';
import type { Cluster } from 'kafkajs';

/** Metrics are usually read every 10 to 60 s. More frequent reads must not ask the brokers each time. */
const ENDS_INTERVAL_MS = 5_000;
/** Reading metrics must not hang with the brokers. The last known ends are used instead. */
const ENDS_TIMEOUT_MS = 1_000;

/** Asks for the first offset that each partition still has, or for the end of its log. */
export async function readOffsets(
  cluster: Pick<Cluster, 'fetchTopicsOffset'>,
  of: { topic: string; partitions: readonly number[]; first: boolean },
): Promise<Map<number, number>> {
  const partitions = of.partitions.map((partition) => ({ partition }));
  const found = await cluster.fetchTopicsOffset([{ topic: of.topic, partitions, fromBeginning: of.first }]);
  const own = found.find(({ topic }) => topic === of.topic)?.partitions ?? [];
  return new Map(own.map(({ partition, offset }) => [partition, Number(offset)]));
}

interface KnownEnd {
  readonly log: { readonly topic: string; readonly partition: number };
  end: number;
}

/**
 * Creates a function that asks for the ends of assigned logs, over the consumer's connections: one request at a time,
 * at most every 5 s. It resolves within 1 s, answered or not. After a fault the last known ends stay.
 */
export function createEndsReader(
  cluster: Pick<Cluster, 'fetchTopicsOffset'>,
  assigned: () => readonly KnownEnd[],
): () => Promise<void> {
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | null = null;

  const ask = async () => {
    const known = assigned();
    for (const topic of new Set(known.map(({ log }) => log.topic))) {
      const own = known.filter(({ log }) => log.topic === topic);
      const ends = await readOffsets(cluster, { topic, partitions: own.map(({ log }) => log.partition), first: false });
      // A fetch may have heard of a later end meanwhile.
      for (const each of own) each.end = Math.max(each.end, ends.get(each.log.partition) ?? 0);
    }
  };

  return async () => {
    if (asking === null && performance.now() - askedAtMs >= ENDS_INTERVAL_MS) {
      askedAtMs = performance.now();
      asking = ask()
        .catch(() => {})
        .finally(() => {
          asking = null;
        });
    }
    if (asking !== null) await waitAtMost(ENDS_TIMEOUT_MS, asking, () => {});
  };
}

/** kafkajs reads metadata every five minutes, so a partition that is added would wait as long for its first reader. */
const PARTITIONS_INTERVAL_MS = 5_000;

/** Members of kafkajs's cluster that its types lack. */
interface MetadataCluster extends Pick<Cluster, 'refreshMetadata' | 'findTopicPartitionMetadata'> {
  metadata(of: { topics: readonly string[] }): Promise<{
    topicMetadata: { topic: string; partitionMetadata: unknown[] }[];
  }>;
}

/**
 * Creates a function that notices added partitions, at most every 5 s. Never throws. Metadata in use are replaced only
 * then: kafkajs fails for all partitions while one has no leader.
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
      // The next fetch compares the assignment with it, and joins the group again.
      if (hasGrown) await cluster.refreshMetadata();
    } catch {
      // The next check asks again.
    }
    checkedAtMs = performance.now();
  };
}
