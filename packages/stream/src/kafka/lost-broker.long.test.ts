import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Stack, startStack } from '@playline/infra/local';
import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendAll } from '../ports.ts';
import { openAtomicPublisher, openLogReader, openProducer, openRecordConsumer, readTopic } from './index.ts';

const START_MS = 300_000;
/** The brokers' session timeout of 3 s, two request timeouts of 5 s, and time for a busy machine. 13 s were seen. */
const RECOVERY_MAX_MS = 20_000;
const TOPICS = ['one', 'two', 'three'];
const PARTITIONS = 3;
const TRANSACTION = 'transaction';
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

/** Returns a record for each partition. */
const toRecords = (text: string) =>
  TOPICS.flatMap((topic) =>
    Array.from({ length: PARTITIONS }, (_, partition) => {
      return { topic, partition, key: null, value: Buffer.from(`${text} ${topic}/${partition}`), headers: {} };
    }),
  );

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
  const openPublisher = () => openAtomicPublisher({ brokers, name: 'publisher' });
  let publisher = await openPublisher();
  const reader = openLogReader({ brokers, clientId: 'reader' });
  return {
    isReady: async () => (await producer.ready()) && members.every((member) => member.ready()),
    /** Publishes a record to each partition. @returns the values of the records */
    async publish(round: string) {
      const records = toRecords(round);
      await sendAll(producer, records);
      return records.map(({ value }) => String(value));
    },
    hasReceived: (values: readonly string[]) => values.every((value) => received.has(value)),
    readBounds: () => Promise.all(TOPICS.map((topic) => reader.bounds(topic))),
    /** Publishes a record to each partition, with another publisher after a fault. @returns the values of the records */
    async publishAtomically(round: string) {
      for (let attempt = 1; ; attempt++) {
        const records = toRecords(`${round} ${TRANSACTION} ${attempt}`);
        try {
          await publisher.publish(records);
          return records.map(({ value }) => String(value));
        } catch {
          await publisher.close();
          publisher = await until('another publisher is open', openPublisher);
        }
      }
    },
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

/** The records of all committed transactions. */
const committed: string[] = [];

const rounds = NODES.flatMap((name) => [
  [name, 'frozen'],
  [name, 'lost'],
]);

it.each(rounds)('all clients continue within 20 s while %s is %s', { timeout: START_MS }, async (name, how) => {
  await until('all clients are ready', clients.isReady);
  const restore = lose(name!, how === 'frozen');
  try {
    const lostAtMs = performance.now();
    const [published, inTransaction, bounds] = await Promise.all([
      clients.publish(`${name} ${how}`),
      clients.publishAtomically(`${name} ${how}`),
      clients.readBounds(),
    ]);
    committed.push(...inTransaction);
    expect(bounds).toHaveLength(TOPICS.length);
    await until('the records are received', () => clients.hasReceived([...published, ...inTransaction]));
    await until('all clients are ready', clients.isReady);
    expect(performance.now() - lostAtMs).toBeLessThan(RECOVERY_MAX_MS);
  } finally {
    restore();
  }
  await until('all replicas are in sync', areReplicasInSync);
});

it('every transaction is stored once and whole, or not at all', async () => {
  const counts = new Map<string, number>();
  for (const topic of TOPICS)
    for (const { value } of await readTopic({ brokers: stack.file.kafka, topic }))
      counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
  expect(committed.filter((value) => counts.get(value) !== 1)).toEqual([]);
  const stored = [...counts].filter(([value]) => value.includes(TRANSACTION));
  expect(stored.filter(([, count]) => count !== 1)).toEqual([]);
  expect(stored.length % (TOPICS.length * PARTITIONS)).toBe(0);
});
