import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { ConfigResourceTypes, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { openBlockConsumer } from '../index.ts';
import { useKafka } from '../test/kafka-fixture.ts';
import { createTopicRetention } from './partitioned-consumer.ts';

const HOUR_MS = 3_600_000;
const INTERVAL_MS = 600_000;

const { fixture, producer } = await useKafka();
const kafka = new Kafka({ brokers: fixture.brokers, clientId: 'test', logLevel: logLevel.NOTHING });
const admin = kafka.admin();
beforeAll(() => admin.connect());
afterAll(() => admin.disconnect());

it('the retention of all topics is read in one request and updated after ten minutes', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const requests: string[][] = [];
  let values = [5 * HOUR_MS, 7 * HOUR_MS];
  const describeConfigs = async ({ resources }: { resources: { name: string }[] }) => {
    requests.push(resources.map(({ name }) => name));
    const entryOf = (at: number) => ({ configName: 'retention.ms', configValue: String(values[at]) });
    return { resources: resources.map(({ name }, at) => ({ resourceName: name, configEntries: [entryOf(at)] })) };
  };
  const cluster = { findControllerBroker: async () => ({ describeConfigs }) as never };
  const retention = createTopicRetention(['short', 'kept']);
  const retentions = () => ['short', 'kept'].map((topic) => retention.retentionMsOf(topic));
  expect(retentions()).toEqual([null, null]);
  await retention.refresh(cluster);
  expect(retentions()).toEqual([5 * HOUR_MS, 7 * HOUR_MS]);
  values = [6 * HOUR_MS, -1];
  vi.advanceTimersByTime(INTERVAL_MS - 1);
  await retention.refresh(cluster);
  expect(retentions()).toEqual([5 * HOUR_MS, 7 * HOUR_MS]);
  vi.advanceTimersByTime(1);
  const unavailable = { findControllerBroker: () => Promise.reject(new Error('no broker responds')) };
  await retention.refresh(unavailable);
  expect(retentions()).toEqual([5 * HOUR_MS, 7 * HOUR_MS]);
  await retention.refresh(cluster);
  expect(retentions()).toEqual([6 * HOUR_MS, null]);
  expect(requests).toEqual(Array(2).fill(['short', 'kept']));
});

it("a consumer reports its topic's retention", async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const configEntries = [{ name: 'retention.ms', value: String(36 * HOUR_MS) }];
  const type = ConfigResourceTypes.TOPIC;
  const resources = [{ type, name: topic, configEntries }];
  await admin.alterConfigs({ validateOnly: false, resources });
  // A broker responds with the old value until it has read the change, and the consumer reads the value only once.
  await until('the retention is set', async () => {
    const described = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name: topic }] });
    return described.resources[0]?.configEntries.some(({ configValue }) => configValue === String(36 * HOUR_MS));
  });
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
  await until('the retention is reported', async () => (await metrics.text()).split('\n').includes(line));
  await consumer.close();
});
