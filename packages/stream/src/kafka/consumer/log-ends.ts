import { waitAtMost } from '@playline/errors';
import type { Cluster } from 'kafkajs';

/** Metrics are read every 10 to 60 s; whoever reads them more often does not ask the brokers as often. */
const ASK_INTERVAL_MS = 5_000;
/** Reading metrics must not hang with the brokers: what was heard before is told instead. */
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
 * Creates the question for the ends of assigned logs, on the connections that the consumer has anyway: at most one at a
 * time, at most every 5 s, answered or not within 1 s. A fault leaves what was known before.
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
