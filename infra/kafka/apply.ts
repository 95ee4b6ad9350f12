import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { allTopics, type Topic } from '@playline/contracts';
import type { KafkaSecurity, StoreFetch } from '@playline/runtime';
import kafkajs, { type Admin } from 'kafkajs';
import { toClient } from './client.ts';
import { registerSchema } from './registry.ts';
import { mendKafkaTimer } from './timer.ts';

/** A Kafka cluster and a schema registry, and how the topics in them shall be called. */
export interface TopicsTarget {
  brokers: readonly string[];
  /** TLS and login of the brokers; in the clear and without a login when absent. */
  security?: KafkaSecurity;
  /** Confluent-compatible address, without a trailing slash. */
  registry: string;
  /** How the registry is asked: by itself without an authority of its own and without a login. */
  fetch?: StoreFetch;
  /** Put before every topic name, and so before every subject; '' outside tests. */
  prefix: string;
  /** Instead of each topic's own number; a topic never gets fewer than it has. */
  partitions?: number;
  /** -1: the cluster's default. */
  replicationFactor?: number;
}

/** What `applyTopics` changed; empty lists when everything stood already. */
export interface TopicsApplied {
  created: string[];
  /** Topics whose settings or partitions were changed. */
  changed: string[];
  /** Subject and schema id. */
  schemas: { subject: string; id: number }[];
}

// kafkajs is CommonJS: Node finds its names only on the default export.
const { ConfigResourceTypes, Kafka, logLevel } = kafkajs;

/** Twice the 1 MiB batch limit: a record carries one message of at most 32 KiB, a dead letter its headers besides. */
const MESSAGE_BYTES_MAX = 2 * 1024 * 1024;
const SCHEMAS = new URL('../../packages/contracts/schemas/', import.meta.url);

/**
 * Creates every topic and registers every schema that is not there yet, and sets settings that differ right. Safe to
 * repeat. Partitions are only ever added: fewer would need a new topic, and keys move when more are added.
 * @throws Error of the broker or the registry
 */
export async function applyTopics(target: TopicsTarget): Promise<TopicsApplied> {
  const topics = allTopics().map((topic) => ({
    ...topic,
    name: target.prefix + topic.name,
    partitions: target.partitions ?? topic.partitions,
  }));
  const result: TopicsApplied = { created: [], changed: [], schemas: [] };
  // kafkajs says at every start that its partitioner changed five years ago.
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
    result.created = await createTopics(admin, topics, target.replicationFactor ?? -1);
    const standing = topics.filter(({ name }) => !result.created.includes(name));
    const changed = [...(await addPartitions(admin, standing)), ...(await alterSettings(admin, standing))];
    result.changed = [...new Set(changed)].sort();
  } finally {
    await admin.disconnect();
  }
  const registry = { url: target.registry, fetch: target.fetch };
  for (const { name, schema } of topics) {
    if (schema === null) continue;
    const subject = `${name}-value`;
    const text = readFileSync(new URL(schema, SCHEMAS), 'utf8');
    result.schemas.push({
      subject,
      id: await registerSchema(registry, subject, text),
    });
  }
  return result;
}

function toSettings(topic: Topic): Record<string, string> {
  return {
    'cleanup.policy': topic.cleanup,
    'retention.ms': String(topic.retentionMs),
    'segment.ms': String(topic.segmentMs),
    'message.timestamp.type': topic.timestamps === 'log-append' ? 'LogAppendTime' : 'CreateTime',
    'max.message.bytes': String(MESSAGE_BYTES_MAX),
  };
}

async function createTopics(admin: Admin, topics: readonly Topic[], replicationFactor: number): Promise<string[]> {
  const standing = new Set(await admin.listTopics());
  const missing = topics.filter(({ name }) => !standing.has(name));
  if (missing.length === 0) return [];
  await admin.createTopics({
    // The client's own wait gives up on the first broker that has not heard of the topic yet.
    waitForLeaders: false,
    topics: missing.map((topic) => ({
      topic: topic.name,
      numPartitions: topic.partitions,
      replicationFactor,
      configEntries: Object.entries(toSettings(topic)).map(([name, value]) => ({ name, value })),
    })),
  });
  const names = missing.map(({ name }) => name);
  await awaitLeaders(admin, names);
  return names;
}

/** Longer than a loaded broker takes to lead a few dozen new partitions. */
const LEADERS_MAX_MS = 30_000;
const LEADERS_POLL_MS = 100;

/** Waits until every partition of the topics has a leader. @throws the last fault, or one that names the wait */
async function awaitLeaders(admin: Admin, topics: string[]): Promise<void> {
  const deadline = performance.now() + LEADERS_MAX_MS;
  let fault: unknown = new Error(`new topics have no leaders after ${LEADERS_MAX_MS / 1000} s`);
  while (performance.now() < deadline) {
    try {
      const metadata = await admin.fetchTopicMetadata({ topics });
      if (metadata.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return;
    } catch (error) {
      fault = error;
    }
    await delay(LEADERS_POLL_MS);
  }
  throw fault;
}

async function addPartitions(admin: Admin, topics: readonly Topic[]): Promise<string[]> {
  if (topics.length === 0) return [];
  const metadata = await admin.fetchTopicMetadata({ topics: topics.map(({ name }) => name) });
  const counts = new Map(metadata.topics.map(({ name, partitions }) => [name, partitions.length]));
  const short = topics.filter(({ name, partitions }) => (counts.get(name) ?? 0) < partitions);
  if (short.length === 0) return [];
  await admin.createPartitions({
    topicPartitions: short.map(({ name, partitions }) => ({ topic: name, count: partitions })),
  });
  return short.map(({ name }) => name);
}

async function alterSettings(admin: Admin, topics: readonly Topic[]): Promise<string[]> {
  if (topics.length === 0) return [];
  const described = await admin.describeConfigs({
    includeSynonyms: false,
    resources: topics.map(({ name }) => ({ type: ConfigResourceTypes.TOPIC, name })),
  });
  const actual = new Map(
    described.resources.map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
  const wrong = topics.filter((topic) =>
    Object.entries(toSettings(topic)).some(([name, value]) => actual.get(topic.name)?.get(name) !== value),
  );
  if (wrong.length === 0) return [];
  await admin.alterConfigs({
    validateOnly: false,
    resources: wrong.map((topic) => ({
      type: ConfigResourceTypes.TOPIC,
      name: topic.name,
      configEntries: Object.entries(toSettings(topic)).map(([name, value]) => ({ name, value })),
    })),
  });
  return wrong.map(({ name }) => name);
}
