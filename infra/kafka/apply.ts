// Creates topics, registers schemas, and corrects topic settings.
import { isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  Admin as AlteringAdmin,
  type BaseOptions,
  ConfigResourceTypes,
  IncrementalAlterConfigOperationTypes,
} from '@platformatic/kafka';
import { readTopicSchema, schemaSubjectOf, TOPICS, type Topic } from '@playline/contracts';
import type { KafkaSecurity } from '@playline/runtime';
import type { StoreFetch } from '@playline/stores';
import { deadLetterTopicOf } from '@playline/stream';
import { createRegistryAdmin, type RegistryAdmin } from '@playline/stream/kafka';
import type { Admin, ITopicMetadata, KafkaConfig } from 'kafkajs';
import kafkajs from 'kafkajs';
import { patchKafkaTimer } from './timer.ts';

/** Returns the topics of the contract and their dead-letter topics. */
export function allTopics(): Topic[] {
  return Object.values(TOPICS).flatMap((topic: Topic) => [
    topic,
    { ...topic, name: deadLetterTopicOf(topic.name), key: 'same as the source record', schema: null },
  ]);
}

export interface TopicsTarget {
  brokers: readonly string[];
  security?: KafkaSecurity;
  /** URL of the Confluent-compatible API, without a trailing slash. */
  registry: string;
  fetch?: StoreFetch;
  /** Prefix of all topics and subjects. */
  prefix: string;
  /** Overrides the partition count of new topics and of topics that can grow. Partitions are never removed. */
  partitions?: number;
  /** Replication factor of new topics. Default: three, or the number of brokers if lower. */
  replicationFactor?: number;
  /** Default: two, or one for a single replica. Existing topics keep a higher value. */
  minInsyncReplicas?: number;
  /** A hook for tests that is awaited before the first change. */
  beforeChange?: () => Promise<unknown>;
}

export interface TopicsApplied {
  created: string[];
  /** Topics with changed settings or partitions. */
  changed: string[];
  schemas: { subject: string; id: number }[];
  /** Warnings about the replication of the cluster and its topics. */
  notices: string[];
}

/** Topics that brokers create. Losing them would lose committed offsets and transactions. */
const INTERNAL_TOPICS = ['__consumer_offsets', '__transaction_state'];

/**
 * Creates missing topics, registers missing schemas, adds partitions to topics that can grow, and corrects the settings
 * in `toSettings`. Can be repeated. The replicas of existing topics are not changed, but differences are reported.
 * @throws Error from a broker or the registry, or for an impossible replication factor
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
    const creation = await createTopics(admin, missing, replication);
    const cluster: Cluster = { ...before, topics: new Map([...before.topics, ...creation.topics]) };
    // If some of these topics existed, all topics are compared, because the client does not report which ones existed.
    const compared = creation.areNew ? topics.filter(({ name }) => before.topics.has(name)) : topics;
    const lacksPartitions = ({ name, partitions }: Topic) => (cluster.topics.get(name)?.partitions ?? 0) < partitions;
    const incomplete = compared.filter(lacksPartitions);
    const added = await addPartitions(
      admin,
      incomplete.filter(({ canGrow }) => canGrow === true),
    );
    const altered = await alterSettings({ admin, brokers, security, cluster, replication }, compared);
    const changed = [...new Set([...added, ...altered.changed])].sort();
    const created = missing.map(({ name }) => name).filter((name) => !changed.includes(name));
    const warning = toWarning(replication);
    const internal = INTERNAL_TOPICS.flatMap((name) => cluster.topics.get(name) ?? []);
    const existing = [...altered.topics, ...internal.map((topic) => ({ ...topic, minInsyncReplicas: 0 }))];
    const fixed = incomplete.filter(({ canGrow }) => canGrow !== true);
    const notices = [
      ...(warning === null ? [] : [warning]),
      ...toNotices(existing, replication),
      ...(fixed.length === 0 ? [] : [toFixedNotice(fixed)]),
    ];
    await assertSchemasKnown(admin, registry, compared);
    return { created, changed, notices };
  });
  return { ...applied, schemas: await registerSchemas(registry, topics) };
}

async function registerSchemas(registry: RegistryAdmin, topics: readonly Topic[]): Promise<TopicsApplied['schemas']> {
  const schemas: TopicsApplied['schemas'] = [];
  // In sequence, because some registries fail if the first schemas of two subjects are registered concurrently.
  for (const topic of topics) {
    const [subject, text] = [schemaSubjectOf(topic.name), readTopicSchema(topic)];
    if (text !== null) schemas.push({ subject, id: await registry.register(subject, text) });
  }
  return schemas;
}

/** Creates topics, except topics that another deployment has just created. @returns true in `areNew` if all are new */
async function createTopics(
  admin: Admin,
  topics: readonly Topic[],
  { replicationFactor, minInsyncReplicas }: Replication,
): Promise<{ topics: Cluster['topics']; areNew: boolean }> {
  if (topics.length === 0) return { topics: new Map(), areNew: true };
  const areNew = await admin.createTopics({
    // kafkajs itself would fail at the first broker that does not know the topic.
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

/** Adds missing partitions. @returns the names of changed topics */
async function addPartitions(admin: Admin, incomplete: readonly Topic[]): Promise<string[]> {
  if (incomplete.length === 0) return [];
  try {
    await admin.createPartitions({
      topicPartitions: incomplete.map(({ name, partitions }) => ({ topic: name, count: partitions })),
    });
  } catch (error) {
    // Another deployment has added the partitions. `awaitLeaders` fails if partitions are still missing.
    if ((error as { type?: string }).type !== 'INVALID_PARTITIONS') throw error;
  }
  await awaitLeaders(admin, incomplete);
  return incomplete.map(({ name }) => name);
}

/**
 * Refuses a registry that lacks the schema of a topic with records. Such a registry was emptied or is the wrong one,
 * and would assign ids that records already contain.
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
      `schema registry: ${name}-value does not exist, but the topic ${name} contains records with ids of its schemas. ` +
        'Check SCHEMA_REGISTRY_URL. If the registry was emptied, restore it from a backup before services start, ' +
        'because the records cannot be read without their schemas. To discard the records, delete the topic.',
    );
  }
}

/** Twice the batch limit of 1 MiB. A record contains one message of at most 32 KiB; a dead letter also has headers. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
const MIN_INSYNC = 'min.insync.replicas';

/** Returns the topic settings that Playline manages. The operator manages all other settings. */
export function toSettings(topic: Topic, minInsyncReplicas: number): Map<string, string> {
  return new Map([
    ['cleanup.policy', topic.cleanup],
    ...(topic.compactionLagMs === undefined ? [] : [['min.compaction.lag.ms', String(topic.compactionLagMs)] as const]),
    ['retention.ms', String(topic.retentionMs)],
    ['segment.ms', String(topic.segmentMs)],
    // With producer timestamps, a wrong clock could cause brokers to refuse records or delete them immediately.
    ['message.timestamp.type', 'LogAppendTime'],
    ['max.message.bytes', String(MESSAGE_BYTES_MAX)],
    [MIN_INSYNC, String(minInsyncReplicas)],
  ]);
}

interface Target extends Connection {
  readonly admin: Admin;
  readonly cluster: Cluster;
  readonly replication: Replication;
}

/** Corrects the settings in `toSettings`. @returns the changed topics, and the replication of all topics */
async function alterSettings(
  { admin, cluster, replication, ...connection }: Target,
  topics: readonly Topic[],
): Promise<{ changed: string[]; topics: ExistingTopic[] }> {
  const actual = await readSettings(admin, topics);
  const existing: ExistingTopic[] = [];
  const mismatches: { name: string; settings: [string, string][] }[] = [];
  for (const topic of topics) {
    const settings = actual.get(topic.name) ?? new Map<string, string>();
    const { replicationFactor } = cluster.topics.get(topic.name) ?? replication;
    const before = { name: topic.name, replicationFactor, minInsyncReplicas: Number(settings.get(MIN_INSYNC) ?? 1) };
    const minInsyncReplicas = raiseInsync(before, replication);
    existing.push({ ...before, minInsyncReplicas });
    const differing = [...toSettings(topic, minInsyncReplicas)].filter(([key, value]) => settings.get(key) !== value);
    if (differing.length > 0) mismatches.push({ name: topic.name, settings: differing });
  }
  if (mismatches.length > 0) await setIncrementally(connection, mismatches);
  return { changed: mismatches.map(({ name }) => name), topics: existing };
}

/** Reads the effective settings, including cluster defaults. */
async function readSettings(admin: Admin, topics: readonly Topic[]): Promise<Map<string, Map<string, string>>> {
  if (topics.length === 0) return new Map();
  const query = {
    includeSynonyms: false,
    resources: topics.map(({ name }) => ({ type: ConfigResourceTypes.TOPIC, name })),
  };
  // The receiving broker may not know a new topic yet.
  const { resources } = await retryTemporary(() => admin.describeConfigs(query));
  return new Map(
    resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
}

/** Changes settings incrementally with a second client, because kafkajs would reset all other settings. */
async function setIncrementally(connection: Connection, topics: { name: string; settings: [string, string][] }[]) {
  const admin = new AlteringAdmin(toAlteringClient(connection));
  const configOperation = IncrementalAlterConfigOperationTypes.SET;
  const resources = topics.map(({ name, settings }) => ({
    resourceType: ConfigResourceTypes.TOPIC,
    resourceName: name,
    configs: settings.map(([key, value]) => ({ name: key, configOperation, value })),
  }));
  try {
    await admin.incrementalAlterConfigs({ resources });
  } finally {
    await admin.close();
  }
}

interface Cluster {
  /** Number of brokers, including unavailable brokers with a replica of a topic. */
  readonly brokers: number;
  readonly topics: ReadonlyMap<string, { name: string; partitions: number; replicationFactor: number }>;
}

/**
 * Reads the existing topics. A restarting broker counts: creating a topic with a replica on that broker should fail
 * rather than create fewer replicas.
 */
async function readCluster(admin: Admin, names: readonly string[]): Promise<Cluster> {
  const { brokers } = await admin.describeCluster();
  const existing = (await admin.listTopics()).filter((name) => names.includes(name));
  // For an empty list, the client would request all topics.
  const topics = existing.length === 0 ? [] : await retryTemporary(() => readMetadata(admin, existing));
  const ids = new Set(brokers.map(({ nodeId }) => nodeId));
  for (const { partitions } of topics) for (const { replicas } of partitions) for (const id of replicas) ids.add(id);
  return { brokers: ids.size, topics: toExistingTopics(topics) };
}

function toExistingTopics(topics: readonly ITopicMetadata[]): Cluster['topics'] {
  const entries = topics.map(({ name, partitions }) => {
    // The partition with the fewest replicas determines the guarantee of a topic.
    const replicationFactor = partitions
      .map(({ replicas }) => replicas.length)
      .reduce((least, each) => Math.min(least, each), Number.POSITIVE_INFINITY);
    return [name, { name, partitions: partitions.length, replicationFactor }] as const;
  });
  return new Map(entries);
}

interface Replication {
  replicationFactor: number;
  /** Records are refused if fewer replicas are in sync. */
  minInsyncReplicas: number;
}

/** Allows one broker to fail while another broker restarts. */
const REPLICATION_FACTOR = 3;
/** With two brokers, records are refused while one is down: clients resend events, but a failed disk loses records. */
const MIN_INSYNC_REPLICAS = 2;

/** @param requested settings of the operator @throws Error for an impossible setting */
export function chooseReplication(brokers: number, requested: Partial<Replication>): Replication {
  const replicationFactor = requested.replicationFactor ?? Math.min(REPLICATION_FACTOR, brokers);
  const minInsyncReplicas = requested.minInsyncReplicas ?? Math.min(MIN_INSYNC_REPLICAS, replicationFactor);
  if (replicationFactor > brokers)
    throw new Error(
      `${replicationFactor} replicas require ${replicationFactor} brokers, but the cluster has ${brokers}. Lower TOPIC_REPLICATION_FACTOR`,
    );
  if (minInsyncReplicas > replicationFactor)
    throw new Error(
      `${minInsyncReplicas} in-sync replicas of ${replicationFactor} are impossible, because no record could be stored. Lower TOPIC_MIN_INSYNC_REPLICAS`,
    );
  return { replicationFactor, minInsyncReplicas };
}

/** @returns a warning if replication is weaker than three replicas with two in sync, otherwise null */
export function toWarning({ replicationFactor, minInsyncReplicas }: Replication): string | null {
  if (replicationFactor === 1) return 'topics have one replica: if its disk fails, acknowledged records are lost';
  if (minInsyncReplicas === 1)
    return `topics have ${replicationFactor} replicas, of which only one must be in sync: if its disk fails, acknowledged records are lost`;
  if (minInsyncReplicas === replicationFactor)
    return `topics have ${replicationFactor} replicas, all of which must be in sync: while a broker is down, records are refused`;
  return null;
}

interface ExistingTopic extends Replication {
  readonly name: string;
}

/** Raises the setting to at most the number of replicas, but never lowers a value that an operator has raised. */
export const raiseInsync = (topic: Replication, desired: Replication): number =>
  Math.max(topic.minInsyncReplicas, Math.min(desired.minInsyncReplicas, topic.replicationFactor));

const toFixedNotice = (topics: readonly Topic[]): string =>
  `${topics.map(({ name }) => name).join(', ')}: fewer partitions than configured; unchanged, because keys must remain in their partitions (infra/kafka/README.md)`;

/** Describes how existing topics differ from the desired replication, with one sentence per difference. */
export function toNotices(topics: readonly ExistingTopic[], desired: Replication): string[] {
  const names = new Map<string, string[]>();
  for (const topic of topics)
    for (const text of toDifferences(topic, desired)) names.set(text, [...(names.get(text) ?? []), topic.name]);
  return [...names].map(([text, topicNames]) => `${topicNames.join(', ')}: ${text}`);
}

function toDifferences({ replicationFactor, minInsyncReplicas }: Replication, desired: Replication): string[] {
  const texts: string[] = [];
  if (replicationFactor < desired.replicationFactor)
    texts.push(
      `${replicationFactor} of ${desired.replicationFactor} replicas; add replicas with kafka-reassign-partitions.sh and run this command again`,
    );
  if (replicationFactor > desired.replicationFactor)
    texts.push(`${replicationFactor} replicas instead of ${desired.replicationFactor}; unchanged`);
  if (minInsyncReplicas > replicationFactor)
    texts.push(
      `min.insync.replicas (${minInsyncReplicas}) exceeds the number of replicas (${replicationFactor}): the topic accepts no records`,
    );
  else if (minInsyncReplicas > desired.minInsyncReplicas)
    texts.push(
      `min.insync.replicas ${minInsyncReplicas} instead of ${desired.minInsyncReplicas}; unchanged; use kafka-configs.sh to lower it`,
    );
  return texts;
}

/** Deletes the topics and subjects of a test run. @param target.prefix must not be '' */
export async function dropTopics(target: Omit<TopicsTarget, 'partitions' | 'beforeChange'>): Promise<void> {
  if (target.prefix === '') throw new RangeError('prefix: an empty prefix would delete every topic');
  const registry = createRegistryAdmin({ url: target.registry, fetch: target.fetch });
  await withAdmin(target, async (admin) => {
    const topics = (await admin.listTopics()).filter((name) => name.startsWith(target.prefix));
    await admin.deleteTopics({ topics });
    // Remaining subjects are harmless, because no other run uses the prefix.
    await Promise.allSettled(topics.map((topic) => registry.remove(schemaSubjectOf(topic))));
  });
}

const CLIENT_ID = 'playline-topics';
type Connection = { brokers: readonly string[]; security?: KafkaSecurity | undefined };

function toClient({
  brokers,
  security: { tls, sasl } = {},
}: Connection): Pick<KafkaConfig, 'brokers' | 'ssl' | 'sasl'> {
  const login = sasl && ({ ...sasl, mechanism: sasl.mechanism.toLowerCase() } as NonNullable<KafkaConfig['sasl']>);
  return { brokers: [...brokers], ...(tls && { ssl: { ...tls } }), ...(login && { sasl: login }) };
}

async function withAdmin<T>(options: Connection, work: (admin: Admin) => Promise<T>): Promise<T> {
  // Suppresses a kafkajs warning about its changed default partitioner.
  process.env.KAFKAJS_NO_PARTITIONER_WARNING = '1';
  patchKafkaTimer();
  // kafkajs is CommonJS, so Node provides its exports only in the default export.
  const { Kafka, logLevel } = kafkajs;
  const kafka = new Kafka({ clientId: CLIENT_ID, ...toClient(options), logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/** Returns options for the client that alters settings incrementally. */
function toAlteringClient({ brokers, security: { tls, sasl } = {} }: Connection): BaseOptions {
  const { servername, ...trust } = tls ?? {};
  // For IP addresses, TLS sends no server name and verifies the address.
  const isNamed = brokers.every((broker) => isIP(broker.slice(0, broker.lastIndexOf(':'))) === 0);
  return {
    clientId: CLIENT_ID,
    bootstrapBrokers: [...brokers],
    ...(tls && { tls: trust, tlsServerName: servername ?? isNamed }),
    ...(sasl && { sasl: { ...sasl } }),
  };
}

const LEADERS_MAX_MS = 30_000;
const LEADERS_POLL_MS = 100;

/** @throws a retriable Error if a topic is unknown or a partition has no leader */
export async function readMetadata(
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly string[],
): Promise<readonly ITopicMetadata[]> {
  try {
    return (await admin.fetchTopicMetadata({ topics: [...topics] })).topics;
  } catch (error) {
    // kafkajs ignores responses with errors and throws a TypeError if no response remains.
    if (!(error instanceof TypeError)) throw error;
    const message = `a topic does not exist, or one of its partitions has no leader: ${topics.join(', ')}`;
    throw Object.assign(new Error(message, { cause: error }), { retriable: true });
  }
}

/** Waits until every partition has a leader. @param topics topics with their minimum number of partitions */
export async function awaitLeaders(
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly { readonly name: string; readonly partitions?: number }[],
): Promise<readonly ITopicMetadata[]> {
  return retryTemporary(async () => {
    const found = await readMetadata(
      admin,
      topics.map(({ name }) => name),
    );
    const waiting = topics.filter(({ name, partitions: count = 1 }) => {
      const partitions = found.find((topic) => topic.name === name)?.partitions ?? [];
      return partitions.length < count || partitions.some(({ leader }) => leader < 0);
    });
    if (waiting.length === 0) return found;
    const names = waiting.map(({ name }) => name).join(', ');
    const error = new Error(`partitions are missing or have no leader after ${LEADERS_MAX_MS / 1000} s: ${names}`);
    throw Object.assign(error, { retriable: true });
  });
}

/**
 * Retries a request while a broker does not know a topic or does not lead its partitions yet, because kafkajs gives up
 * at the first error.
 * @throws permanent errors immediately, temporary errors after half a minute
 */
export async function retryTemporary<T>(request: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + LEADERS_MAX_MS;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!isTemporary(error) || performance.now() >= deadline) throw error;
    }
    await delay(LEADERS_POLL_MS);
  }
}

/** Also checks the cause, because kafkajs marks an error as permanent after its retries. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as { retriable?: boolean }).retriable === true || isTemporary(error.cause);
}
