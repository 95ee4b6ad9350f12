import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { type Admin, type Cluster, ConfigResourceTypes, Kafka, logLevel, PartitionAssigners } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { openBlockConsumer } from '../index.ts';
import { openProducer } from '../producer/open-producer.ts';
import { type KafkaFixture, openKafkaFixture } from '../test/kafka-fixture.ts';
import { createTopicRetention } from './partitioned-consumer.ts';

const HOUR_MS = 3_600_000;
const INTERVAL_MS = 600_000;

let fixture: KafkaFixture;
let kafka: Kafka;
let admin: Admin;
beforeAll(async () => {
  fixture = await openKafkaFixture();
  kafka = new Kafka({ brokers: fixture.brokers, clientId: 'test', logLevel: logLevel.NOTHING });
  admin = kafka.admin();
  await admin.connect();
});
afterAll(async () => {
  await admin.disconnect();
  await fixture.close();
});
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const keepFor = async (topic: string, retentionMs: number) => {
  const configEntries = [{ name: 'retention.ms', value: String(retentionMs) }];
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }];
  await admin.alterConfigs({ validateOnly: false, resources });
  await until(`${topic} is kept for ${retentionMs} ms`, async () => {
    const described = [{ type: ConfigResourceTypes.TOPIC, name: topic, configNames: ['retention.ms'] }];
    const { resources: found } = await admin.describeConfigs({ resources: described, includeSynonyms: false });
    return found[0]?.configEntries[0]?.configValue === String(retentionMs);
  });
};

/** A cluster as a consumer gets it from kafkajs. */
async function openCluster(): Promise<{ cluster: Cluster; close(): Promise<void> }> {
  const given: Cluster[] = [];
  const consumer = kafka.consumer({
    groupId: 'retention-test',
    partitionAssigners: [
      (config) => {
        given.push(config.cluster);
        return PartitionAssigners.roundRobin(config);
      },
    ],
  });
  await consumer.connect();
  // Finds the controller, as a join does.
  await (given[0] as Cluster & { refreshMetadata(): Promise<void> }).refreshMetadata();
  return { cluster: given[0]!, close: () => consumer.disconnect() };
}

it('the retention of topics is read in one request, again after ten minutes, and kept while no broker answers', async () => {
  const [short, kept] = [await fixture.createTopic({ partitions: 1 }), await fixture.createTopic({ partitions: 1 })];
  await keepFor(short, 5 * HOUR_MS);
  await keepFor(kept, 7 * HOUR_MS);
  const { cluster, close } = await openCluster();
  const retention = createTopicRetention([short, kept]);
  const known = () => [short, kept].map((topic) => retention.retentionMsOf(topic));
  expect(known()).toEqual([null, null]);
  await retention.refresh(cluster);
  expect(known()).toEqual([5 * HOUR_MS, 7 * HOUR_MS]);
  await keepFor(short, 6 * HOUR_MS);
  await keepFor(kept, -1);
  vi.advanceTimersByTime(INTERVAL_MS - 1);
  await retention.refresh(cluster);
  expect(known()).toEqual([5 * HOUR_MS, 7 * HOUR_MS]);
  vi.advanceTimersByTime(1);
  const away = { findControllerBroker: () => Promise.reject(new Error('no broker answers')) };
  await retention.refresh(away);
  expect(known()).toEqual([5 * HOUR_MS, 7 * HOUR_MS]);
  // After a fault the next refresh does not wait.
  await retention.refresh(cluster);
  expect(known()).toEqual([6 * HOUR_MS, null]);
  await close();
});

it('a consumer reports the retention of its topic', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  await keepFor(topic, 36 * HOUR_MS);
  const producer = await openProducer({ brokers: fixture.brokers, clientId: 'test' });
  const metrics = createMetrics('test');
  const consumer = await openBlockConsumer({
    brokers: fixture.brokers,
    groupId: `${topic}-group`,
    topics: [topic],
    sessionTimeoutMs: 3_000,
    metrics,
    sink: createTokenSink(new TokenStore()),
    deadLetters: producer,
    limits: { rowsMax: 1, bytesMax: 1_000, ageMaxMs: 1 },
  });
  const line = `playline_stream_retention_left_seconds{topic="${topic}",service="test"} 129600`;
  await until('the retention', async () => (await metrics.text()).split('\n').includes(line));
  await consumer.close();
  await producer.close();
});
