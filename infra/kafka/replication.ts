/** Number of machines with a topic's records, and how many must have a record before it is acknowledged. */
export interface Replication {
  /** Brokers that keep a copy of each partition. */
  replicationFactor: number;
  /** `min.insync.replicas`: with fewer copies up to date, a record is refused. */
  minInsyncReplicas: number;
}

/** Enough that one broker may fail while another one restarts. */
const REPLICATION_FACTOR = 3;
/**
 * An acknowledged record should be on two machines if there are two. So two brokers accept nothing while one is down.
 * That is better: a client sends a refused event again, but an event on a lost disk is gone.
 */
const MIN_INSYNC_REPLICAS = 2;

/**
 * The replication of topics in a cluster of this many brokers.
 * @param wish settings of the operator, if any
 * @throws Error that says which setting is impossible, and why
 */
export function chooseReplication(brokers: number, wish: Partial<Replication>): Replication {
  const replicationFactor = wish.replicationFactor ?? Math.min(REPLICATION_FACTOR, brokers);
  const minInsyncReplicas = wish.minInsyncReplicas ?? Math.min(MIN_INSYNC_REPLICAS, replicationFactor);
  if (replicationFactor > brokers)
    throw new Error(`${replicationFactor} replicas need as many brokers, and the cluster has ${brokers}`);
  if (minInsyncReplicas > replicationFactor)
    throw new Error(
      `${minInsyncReplicas} in-sync replicas of ${replicationFactor} would be asked for: no record could ever be stored`,
    );
  return { replicationFactor, minInsyncReplicas };
}

/** What is weaker than with three replicas and two in sync; null when nothing is. */
export function toWarning({ replicationFactor, minInsyncReplicas }: Replication): string | null {
  if (replicationFactor === 1)
    return 'topics have one replica: "every in-sync replica" is one machine, and losing its disk loses what was acknowledged';
  if (minInsyncReplicas === 1)
    return `topics have ${replicationFactor} replicas, one of which may be the only one in sync: what was acknowledged then is lost with its disk`;
  if (minInsyncReplicas === replicationFactor)
    return `topics have ${replicationFactor} replicas, all of which must be in sync: while one broker is away, records are refused`;
  return null;
}

/** An existing topic. */
export interface StandingTopic extends Replication {
  readonly name: string;
}

/**
 * The `min.insync.replicas` for an existing topic. It is never lowered, because an operator may have raised it on
 * purpose. It is never raised above the number of replicas, because such a topic would accept no record.
 */
export function raiseInsync(topic: Replication, wanted: Replication): number {
  return Math.max(topic.minInsyncReplicas, Math.min(wanted.minInsyncReplicas, topic.replicationFactor));
}

/** Notices about existing topics that differ from the intended ones, one sentence for all topics alike. */
export function toNotices(topics: readonly StandingTopic[], wanted: Replication): string[] {
  const names = new Map<string, string[]>();
  for (const topic of topics)
    for (const words of toDifferences(topic, wanted)) names.set(words, [...(names.get(words) ?? []), topic.name]);
  return [...names].map(([words, all]) => `${all.join(', ')}: ${words}`);
}

function toDifferences({ replicationFactor, minInsyncReplicas }: Replication, wanted: Replication): string[] {
  const words: string[] = [];
  if (replicationFactor < wanted.replicationFactor)
    words.push(
      `${replicationFactor} of ${wanted.replicationFactor} replicas; kafka-reassign-partitions.sh adds them, and this command, run again, the in-sync replicas that they allow`,
    );
  if (replicationFactor > wanted.replicationFactor)
    words.push(`${replicationFactor} replicas where ${wanted.replicationFactor} are asked for; they stay`);
  if (minInsyncReplicas > replicationFactor)
    words.push(`min.insync.replicas ${minInsyncReplicas} of ${replicationFactor} replicas: it takes no record`);
  else if (minInsyncReplicas > wanted.minInsyncReplicas)
    words.push(
      `min.insync.replicas ${minInsyncReplicas} where ${wanted.minInsyncReplicas} is asked for; it stays, kafka-configs.sh lowers it`,
    );
  return words;
}
