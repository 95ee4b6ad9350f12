import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Stack, startStack } from '@playline/infra/local';
import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendAll } from '../ports.ts';
import { openAtomicPublisher, openLogReader, openProducer, openRecordConsumer } from './index.ts';

const START_MS = 300_000;
/** The brokers' session timeout of 3 s, two request timeouts of 5 s, and time for a busy machine. */
const RECOVERY_MAX_MS = 20_000;
const TOPICS = ['one', 'two', 'three'];
const PARTITIONS = 3;
const NODES = ['kafka', 'kafka-2', 'kafka-3'];

const directory = mkdtempSync(join(tmpdir(), 'playline-lost-broker-'));
let stack: Stack;
let clients: Awaited<ReturnType<typeof openClients>>;

beforeAll(async () => {
  stack = await startStack({ directory, services: [], kafkaBrokers: NODES.length, isDisposable: true });
  clients = await openClients(stack.file.kafka);
}, START_MS);

afterAll(async () => {
  await clients?.close();
  await stack?.stop();
  rmSync(directory, { recursive: true, force: true });
}, START_MS);

async function withAdmin<T>(brokers: readonly string[], run: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    return await run(admin);
  } finally {
    await admin.disconnect();
  }
}

/** Includes the topics of commits and transactions, which must not lose a second replica in the next round. */
const areReplicasInSync = () =>
  withAdmin(stack.file.kafka, async (admin) => {
    const metadata = await admin.fetchTopicMetadata({ topics: await admin.listTopics() });
    const partitions = metadata.topics.flatMap((topic) => topic.partitions);
    return partitions.every(({ isr, replicas }) => isr.length === replicas.length);
  });

/** Opens two members of a group, and all other clients, before a broker is lost. */
async function openClients(brokers: readonly string[]) {
  const topics = TOPICS.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: NODES.length }));
  await withAdmin(brokers, (admin) => admin.createTopics({ topics, waitForLeaders: true }));
  const received = new Set<string>();
  const openMember = () =>
    openRecordConsumer({
      brokers,
      groupId: 'group',
      topics: TOPICS,
      sessionTimeoutMs: 10_000,
      metrics: createMetrics('test'),
      onBatch: async (records) => {
        for (const { value } of records) received.add(String(value));
      },
    });
  const members = [await openMember(), await openMember()];
  const producer = await openProducer({ brokers, clientId: 'producer', topics: TOPICS });
  const publisher = await openAtomicPublisher({ brokers, name: 'publisher' });
  const reader = openLogReader({ brokers, clientId: 'reader' });
  return {
    isReady: async () => (await producer.ready()) && members.every((member) => member.ready()),
    /** Publishes a record to each partition. @returns the values of the records */
    async publish(round: string) {
      const records = TOPICS.flatMap((topic) =>
        Array.from({ length: PARTITIONS }, (_, partition) => {
          return { topic, partition, key: null, value: Buffer.from(`${round} ${topic}/${partition}`) };
        }),
      );
      await sendAll(producer, records);
      return records.map(({ value }) => String(value));
    },
    hasReceived: (values: readonly string[]) => values.every((value) => received.has(value)),
    readBounds: () => Promise.all(TOPICS.map((topic) => reader.bounds(topic))),
    publishAtomically: (text: string) =>
      publisher.publish(TOPICS.map((topic) => ({ topic, key: null, value: Buffer.from(text), headers: {} }))),
    close: () => Promise.all([...members, producer, publisher, reader].map((client) => client.close())),
  };
}

/** Freezes a broker, or kills it and prevents its restart. @returns a function that restores the broker */
function lose(name: string, isFrozen: boolean): () => void {
  const pid = stack.file.processes[name] ?? 0;
  const settings = join(stack.paths.state, 'etc', `${name}.properties`);
  process.kill(pid, isFrozen ? 'SIGSTOP' : 'SIGKILL');
  if (isFrozen) return () => process.kill(pid, 'SIGCONT');
  renameSync(settings, `${settings}.away`);
  return () => renameSync(`${settings}.away`, settings);
}

const rounds = NODES.flatMap((name) => [
  [name, 'frozen'],
  [name, 'lost'],
]);

it.each(rounds)('all clients continue within 20 s while %s is %s', { timeout: START_MS }, async (name, how) => {
  await until('all clients are ready', clients.isReady);
  const restore = lose(name!, how === 'frozen');
  try {
    const lostAtMs = performance.now();
    const published = clients.publish(`${name} ${how}`);
    await until('a transaction is committed', () => clients.publishAtomically(`${name} ${how}`).then(() => true));
    await until('the records are received', async () => clients.hasReceived(await published));
    expect(await clients.readBounds()).toHaveLength(TOPICS.length);
    await until('all clients are ready', clients.isReady);
    expect(performance.now() - lostAtMs).toBeLessThan(RECOVERY_MAX_MS);
  } finally {
    restore();
  }
  await until('all replicas are in sync', areReplicasInSync);
});
