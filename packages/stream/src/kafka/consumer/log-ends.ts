import { waitAtMost } from '@playline/errors';
import type { Cluster } from 'kafkajs';

/** Metrics are usually read every 10 to 60 s. More frequent reads must not ask the brokers each time. */
const ASK_INTERVAL_MS = 5_000;
/** Reading metrics must not hang with the brokers. The last known ends are used instead. */
const ANSWER_TIMEOUT_MS = 1_000;

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
export function createAskEnds(
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
    if (asking === null && performance.now() - askedAtMs >= ASK_INTERVAL_MS) {
      askedAtMs = performance.now();
      asking = ask()
        .catch(() => {})
        .finally(() => {
          asking = null;
        });
    }
    if (asking !== null) await waitAtMost(ANSWER_TIMEOUT_MS, asking, () => {});
  };
}
