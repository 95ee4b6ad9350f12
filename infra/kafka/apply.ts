import { schemaSubjectOf, schemaTextOf, type Topic } from '@playline/contracts';
import type { KafkaSecurity, StoreFetch } from '@playline/runtime';
import kafkajs, { type Admin } from 'kafkajs';
import { toClient } from './client.ts';
import { type Cluster, readCluster } from './cluster.ts';
import { awaitLeaders } from './leaders.ts';
import { assertSchemasKnown } from './lost-schemas.ts';
import { registerSchema } from './registry.ts';
import { chooseReplication, type Replication, toNotices, toWarning } from './replication.ts';
import { alterSettings, toSettings } from './settings.ts';
import { mendKafkaTimer } from './timer.ts';
import { allTopics } from './topics.ts';

/** A Kafka cluster, a schema registry, and the options of the topics. */
export interface TopicsTarget {
  brokers: readonly string[];
  /** TLS and login of the brokers; without both when absent. */
  security?: KafkaSecurity;
  /** Confluent-compatible address, without a trailing slash. */
  registry: string;
  /** Client for the registry. Default: without a custom certificate authority or a login. */
  fetch?: StoreFetch;
  /** Prefix of every topic name, and so of every subject; '' outside of tests. */
  prefix: string;
  /** Replaces each topic's own number of partitions. A topic never gets fewer than it has. */
  partitions?: number;
  /**
   * How many replicas a new topic gets. Absent: three, or one for each broker where there are fewer. Existing topics
   * keep theirs.
   */
  replicationFactor?: number;
  /** Replaces the default of two, or one where there is one replica. Never lowers what a topic has. */
  minInsyncReplicas?: number;
}

/** What `applyTopics` changed; empty lists when nothing had to be. */
export interface TopicsApplied {
  created: string[];
  /** Topics whose settings or partitions were changed. */
  changed: string[];
  /** Subject and schema id. */
  schemas: { subject: string; id: number }[];
  /** Sentences for the operator about each weakness of the cluster or of a topic. */
  notices: string[];
}

// kafkajs is CommonJS: Node finds its names only on the default export.
const { Kafka, logLevel } = kafkajs;

/**
 * Kafka's internal topics. Their loss would lose commits and transactions. The brokers' settings say how they are
 * created.
 */
const INTERNAL_TOPICS = ['__consumer_offsets', '__transaction_state'];

/**
 * Creates every missing topic, registers every missing schema, and corrects settings that differ. Safe to repeat.
 * Settings that are not ours stay unchanged. Partitions are only added: fewer would need a new topic, and keys move
 * when more are added. Replicas of an existing topic stay unchanged, and differences are reported.
 * @throws Error of the broker or the registry, or one that says why the requested replicas are impossible
 */
export async function applyTopics(target: TopicsTarget): Promise<TopicsApplied> {
  const topics = allTopics().map((topic) => ({
    ...topic,
    name: target.prefix + topic.name,
    partitions: target.partitions ?? topic.partitions,
  }));
  const registry = { url: target.registry, fetch: target.fetch };
  const result: TopicsApplied = { created: [], changed: [], schemas: [], notices: [] };
  // Otherwise kafkajs warns at every start that its partitioner has changed.
  process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
  mendKafkaTimer();
  const { brokers, security } = target;
  const kafka = new Kafka({
    clientId: 'playline-topics',
    ...toClient({ brokers, security }),
    logLevel: logLevel.NOTHING,
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    const cluster = await readCluster(admin, [...topics.map(({ name }) => name), ...INTERNAL_TOPICS]);
    const replication = chooseReplication(cluster.brokers, target);
    result.created = await createTopics(admin, topics, { cluster, replication });
    const standing = topics.filter(({ name }) => !result.created.includes(name));
    const added = await addPartitions(admin, standing, cluster);
    const altered = await alterSettings({ admin, brokers, security, cluster, replication }, standing);
    result.changed = [...new Set([...added, ...altered.changed])].sort();
    const warning = toWarning(replication);
    const internal = INTERNAL_TOPICS.flatMap((name) => cluster.topics.get(name) ?? []);
    const told = [...altered.standing, ...internal.map((topic) => ({ ...topic, minInsyncReplicas: 0 }))];
    result.notices = [...(warning === null ? [] : [warning]), ...toNotices(told, replication)];
    await assertSchemasKnown(admin, registry, standing);
  } finally {
    await admin.disconnect();
  }
  // One after the other: some registries fail when two subjects get their first schema at the same moment.
  for (const topic of topics) {
    const [subject, text] = [schemaSubjectOf(topic.name), schemaTextOf(topic)];
    if (text !== null) result.schemas.push({ subject, id: await registerSchema(registry, subject, text) });
  }
  return result;
}

async function createTopics(
  admin: Admin,
  topics: readonly Topic[],
  { cluster, replication }: { cluster: Cluster; replication: Replication },
): Promise<string[]> {
  const missing = topics.filter(({ name }) => !cluster.topics.has(name));
  if (missing.length === 0) return [];
  await admin.createTopics({
    // The client's own wait fails at the first broker that does not know the topic yet.
    waitForLeaders: false,
    topics: missing.map((topic) => ({
      topic: topic.name,
      numPartitions: topic.partitions,
      replicationFactor: replication.replicationFactor,
      configEntries: [...toSettings(topic, replication.minInsyncReplicas)].map(([name, value]) => ({ name, value })),
    })),
  });
  const names = missing.map(({ name }) => name);
  await awaitLeaders(admin, names);
  return names;
}

async function addPartitions(admin: Admin, topics: readonly Topic[], cluster: Cluster): Promise<string[]> {
  const short = topics.filter(({ name, partitions }) => (cluster.topics.get(name)?.partitions ?? 0) < partitions);
  if (short.length === 0) return [];
  await admin.createPartitions({
    topicPartitions: short.map(({ name, partitions }) => ({ topic: name, count: partitions })),
  });
  return short.map(({ name }) => name);
}
