import { Admin as AlteringAdmin, ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from '@platformatic/kafka';
import { schemaSubjectOf, schemaTextOf, type Topic } from '@playline/contracts';
import type { KafkaSecurity } from '@playline/runtime';
import type { StoreFetch } from '@playline/stores';
import { createRegistryAdmin, type RegistryAdmin } from '@playline/stream/kafka';
import type { Admin, ITopicMetadata } from 'kafkajs';
import { awaitLeaders, readMetadata, retryTemporary, toAlteringClient, withAdmin } from './client.ts';
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
  /** For tests: awaited between the look at the cluster and the first change. */
  beforeChange?: () => Promise<unknown>;
}

/** What `applyTopics` changed; empty lists when nothing had to be. */
export interface TopicsApplied {
  /** Topics that were missing, and now exist as intended. */
  created: string[];
  /** Topics whose settings or partitions were changed. */
  changed: string[];
  /** Subject and schema id. */
  schemas: { subject: string; id: number }[];
  /** Sentences for the operator about each weakness of the cluster or of a topic. */
  notices: string[];
}

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
  const { brokers, security } = target;
  const topics = allTopics().map((topic) => ({
    ...topic,
    name: target.prefix + topic.name,
    partitions: target.partitions ?? topic.partitions,
  }));
  const registry = createRegistryAdmin({ url: target.registry, fetch: target.fetch });
  const applied = await withAdmin(target, async (admin) => {
    const before = await readCluster(admin, [...topics.map(({ name }) => name), ...INTERNAL_TOPICS]);
    const replication = chooseReplication(before.brokers, target);
    const missing = topics.filter(({ name }) => !before.topics.has(name));
    await target.beforeChange?.();
    const made = await createTopics(admin, missing, replication);
    const cluster: Cluster = { ...before, topics: new Map([...before.topics, ...made.topics]) };
    // Where some were there after all, all are compared: the client does not say which.
    const compared = made.areNew ? topics.filter(({ name }) => before.topics.has(name)) : topics;
    const added = await addPartitions(admin, compared, cluster);
    const altered = await alterSettings({ admin, brokers, security, cluster, replication }, compared);
    const changed = [...new Set([...added, ...altered.changed])].sort();
    const created = missing.map(({ name }) => name).filter((name) => !changed.includes(name));
    const warning = toWarning(replication);
    const internal = INTERNAL_TOPICS.flatMap((name) => cluster.topics.get(name) ?? []);
    const told = [...altered.standing, ...internal.map((topic) => ({ ...topic, minInsyncReplicas: 0 }))];
    const notices = [...(warning === null ? [] : [warning]), ...toNotices(told, replication)];
    await assertSchemasKnown(admin, registry, compared);
    return { created, changed, notices };
  });
  return { ...applied, schemas: await registerSchemas(registry, topics) };
}

async function registerSchemas(registry: RegistryAdmin, topics: readonly Topic[]): Promise<TopicsApplied['schemas']> {
  const schemas: TopicsApplied['schemas'] = [];
  // One after the other: some registries fail when two subjects get their first schema at the same moment.
  for (const topic of topics) {
    const [subject, text] = [schemaSubjectOf(topic.name), schemaTextOf(topic)];
    if (text !== null) schemas.push({ subject, id: await registry.register(subject, text) });
  }
  return schemas;
}

/**
 * Creates topics. One may be there after all: another deployment created it at the same moment, or one of several
 * brokers did not know it yet when it was asked. It stays as it is.
 * @returns the topics as they are now, and whether all of them are new
 */
async function createTopics(
  admin: Admin,
  topics: readonly Topic[],
  { replicationFactor, minInsyncReplicas }: Replication,
): Promise<{ topics: Cluster['topics']; areNew: boolean }> {
  if (topics.length === 0) return { topics: new Map(), areNew: true };
  const areNew = await admin.createTopics({
    // The client's own wait fails at the first broker that does not know the topic yet.
    waitForLeaders: false,
    topics: topics.map((topic) => ({
      topic: topic.name,
      numPartitions: topic.partitions,
      replicationFactor,
      configEntries: [...toSettings(topic, minInsyncReplicas)].map(([name, value]) => ({ name, value })),
    })),
  });
  const names = topics.map(({ name }) => ({ name }));
  return { topics: toExistingTopics(await awaitLeaders(admin, names)), areNew };
}

/** @returns the topics that had too few: this deployment, or another one of the same moment, has added the rest */
async function addPartitions(admin: Admin, topics: readonly Topic[], cluster: Cluster): Promise<string[]> {
  const short = topics.filter(({ name, partitions }) => (cluster.topics.get(name)?.partitions ?? 0) < partitions);
  if (short.length === 0) return [];
  try {
    await admin.createPartitions({
      topicPartitions: short.map(({ name, partitions }) => ({ topic: name, count: partitions })),
    });
  } catch (fault) {
    // A topic has as many already. The wait below fails if another one does not get them.
    if ((fault as { type?: string }).type !== 'INVALID_PARTITIONS') throw fault;
  }
  await awaitLeaders(admin, short);
  return short.map(({ name }) => name);
}

/**
 * Refuses a registry that lacks a schema of a topic with records. Such a registry is empty or the wrong one. It would
 * assign ids that occur in those records already, and records would be read with wrong schemas.
 * @param topics existing topics, with the prefix; those without a schema are skipped
 * @throws Error naming the subject and what to do, before anything is registered
 */
async function assertSchemasKnown(
  admin: Admin,
  registry: RegistryAdmin,
  topics: readonly { readonly name: string; readonly schema: string | null }[],
): Promise<void> {
  for (const { name, schema } of topics) {
    if (schema === null || (await registry.hasSubject(schemaSubjectOf(name)))) continue;
    const partitions = await retryTemporary(() => admin.fetchTopicOffsets(name));
    if (partitions.every(({ low, high }) => low === high)) continue;
    throw new Error(
      `schema registry: ${name}-value does not exist, but the topic ${name} holds records with ids of its schemas. ` +
        'Is SCHEMA_REGISTRY_URL right? If the registry was emptied, restore it from its copy, and only then start ' +
        'services: without it those records cannot be read. If they may go, delete the topic.',
    );
  }
}

/** Twice the 1 MiB batch limit. A record has one message of at most 32 KiB; a dead letter also has headers. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
const MIN_INSYNC = 'min.insync.replicas';

/** The topic settings that this project controls, by Kafka's names. All others belong to the operator. */
export function toSettings(topic: Topic, minInsyncReplicas: number): Map<string, string> {
  return new Map([
    ['cleanup.policy', topic.cleanup],
    ...(topic.compactionLagMs === undefined ? [] : [['min.compaction.lag.ms', String(topic.compactionLagMs)] as const]),
    ['retention.ms', String(topic.retentionMs)],
    ['segment.ms', String(topic.segmentMs)],
    // A producer whose clock is wrong could have its records refused, or deleted by retention on arrival.
    ['message.timestamp.type', 'LogAppendTime'],
    ['max.message.bytes', String(MESSAGE_BYTES_MAX)],
    [MIN_INSYNC, String(minInsyncReplicas)],
  ]);
}

/** The topics to alter, and the intended settings. */
interface Target {
  readonly admin: Admin;
  readonly brokers: readonly string[];
  readonly security?: KafkaSecurity | undefined;
  readonly cluster: Cluster;
  readonly replication: Replication;
}

/**
 * Corrects every differing setting of ours, and no other.
 * @returns the changed topics, and the present replication of all
 */
async function alterSettings(
  { admin, cluster, replication, ...connection }: Target,
  topics: readonly Topic[],
): Promise<{ changed: string[]; standing: ExistingTopic[] }> {
  const actual = await readSettings(admin, topics);
  const standing: ExistingTopic[] = [];
  const wrong: { name: string; settings: [string, string][] }[] = [];
  for (const topic of topics) {
    const settings = actual.get(topic.name) ?? new Map<string, string>();
    const { replicationFactor } = cluster.topics.get(topic.name) ?? replication;
    const before = { name: topic.name, replicationFactor, minInsyncReplicas: Number(settings.get(MIN_INSYNC) ?? 1) };
    const minInsyncReplicas = raiseInsync(before, replication);
    standing.push({ ...before, minInsyncReplicas });
    const differing = [...toSettings(topic, minInsyncReplicas)].filter(([key, value]) => settings.get(key) !== value);
    if (differing.length > 0) wrong.push({ name: topic.name, settings: differing });
  }
  if (wrong.length > 0) await setIncrementally(connection, wrong);
  return { changed: wrong.map(({ name }) => name), standing };
}

/** The effective settings, including those inherited from the cluster. */
async function readSettings(admin: Admin, topics: readonly Topic[]): Promise<Map<string, Map<string, string>>> {
  if (topics.length === 0) return new Map();
  const asked = topics.map(({ name }) => ({ type: ConfigResourceTypes.TOPIC, name }));
  // Any broker is asked, and one of several may not know a new topic yet.
  const { resources } = await retryTemporary(() => admin.describeConfigs({ includeSynonyms: false, resources: asked }));
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
}

/** kafkajs has only the request that replaces all settings of a topic, including those that an operator has set. */
async function setIncrementally(
  connection: Pick<Target, 'brokers' | 'security'>,
  topics: readonly { name: string; settings: [string, string][] }[],
) {
  const admin = new AlteringAdmin({ clientId: 'playline-topics', ...toAlteringClient(connection) });
  try {
    await admin.incrementalAlterConfigs({
      resources: topics.map(({ name, settings }) => ({
        resourceType: ConfigResourceTypes.TOPIC,
        resourceName: name,
        configs: settings.map(([key, value]) => ({
          name: key,
          configOperation: IncrementalAlterConfigOperationTypes.SET,
          value,
        })),
      })),
    });
  } finally {
    await admin.close();
  }
}

/** Brokers and topics of a cluster. */
interface Cluster {
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
async function readCluster(admin: Admin, names: readonly string[]): Promise<Cluster> {
  const { brokers } = await admin.describeCluster();
  const asked = (await admin.listTopics()).filter((name) => names.includes(name));
  // Without topic names the client would ask for all topics.
  const topics = asked.length === 0 ? [] : await retryTemporary(() => readMetadata(admin, asked));
  const ids = new Set(brokers.map(({ nodeId }) => nodeId));
  for (const { partitions } of topics) for (const { replicas } of partitions) for (const id of replicas) ids.add(id);
  return { brokers: ids.size, topics: toExistingTopics(topics) };
}

/** What the brokers tell of topics, by name. */
function toExistingTopics(topics: readonly ITopicMetadata[]): Cluster['topics'] {
  const standing = topics.map(({ name, partitions }) => {
    // A topic guarantees only as much as its weakest partition.
    const replicationFactor = partitions
      .map(({ replicas }) => replicas.length)
      .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
    return [name, { name, partitions: partitions.length, replicationFactor }] as const;
  });
  return new Map(standing);
}

/** Number of machines with a topic's records, and how many must have a record before it is acknowledged. */
interface Replication {
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
interface ExistingTopic extends Replication {
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
export function toNotices(topics: readonly ExistingTopic[], wanted: Replication): string[] {
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

/**
 * Deletes every topic and subject of a test run.
 * @param target.prefix as given to `applyTopics`; never '', which would delete every topic
 */
export async function dropTopics(target: {
  brokers: readonly string[];
  security?: KafkaSecurity;
  registry: string;
  fetch?: StoreFetch;
  prefix: string;
}): Promise<void> {
  if (target.prefix === '') throw new RangeError('prefix: without a prefix every topic would be deleted');
  const registry = createRegistryAdmin({ url: target.registry, fetch: target.fetch });
  await withAdmin(target, async (admin) => {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(target.prefix));
    await admin.deleteTopics({ topics });
    // A subject that remains does no harm: no other run has its prefix.
    await Promise.allSettled(topics.map((topic) => registry.remove(schemaSubjectOf(topic))));
  });
}
