import { setTimeout as delay } from 'node:timers/promises';
import { createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { consumerContract } from '../../test/consumer-contract.ts';
import { send } from '../../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { type BlockConsumerOptions, openBlockConsumer, openRecordConsumer } from '../index.ts';
import { openAtomicPublisher } from '../log/open-atomic-publisher.ts';
import { openProducer } from '../producer/open-producer.ts';
import { useKafka } from '../test/kafka-fixture.ts';

/** Short, so that a previous test's member delays rebalances only briefly. */
const SESSION_TIMEOUT_MS = 3_000;

const { fixture, producer } = await useKafka();
const { brokers } = fixture;

consumerContract('kafka', async () => {
  const shared = { brokers, sessionTimeoutMs: SESSION_TIMEOUT_MS };
  return {
    ...fixture,
    producer,
    committed: async (groupId, topic) => {
      const committed = await fixture.committed(groupId, topic);
      return new Map(committed.map(({ partition, offset }) => [partition, offset]));
    },
    openBlockConsumer: (options) => openBlockConsumer({ ...shared, ...options, deadLetters: producer }),
    openRecordConsumer: (options) => openRecordConsumer({ ...shared, ...options }),
    close: async () => {},
  };
});

const openWriter = (topic: string, store: TokenStore, overrides: Partial<BlockConsumerOptions> = {}) =>
  openBlockConsumer({
    brokers,
    groupId: `${topic}-group`,
    topics: [topic],
    sink: createTokenSink(store),
    limits: { rowsMax: 20, bytesMax: 1_000_000, ageMaxMs: 50 },
    deadLetters: producer,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    ...overrides,
  });

it('consumers hand over partitions without writing a block twice when members join and leave', async () => {
  const topic = await fixture.createTopic({ partitions: 4 });
  const store = new TokenStore();
  const written: string[] = [];
  // Slow enough that a write is in progress during every membership change.
  store.onWrite = async ({ partition, start }, phase) => {
    if (phase === 'before') await delay(20);
    else written.push(`${partition}/${start}`);
  };
  const fill = () => {
    const records = Array.from({ length: 800 }, (_, i) => ({ topic, key: null, value: Buffer.from(`row ${i}`) }));
    return Promise.all(records.map((record) => send(producer, [record])));
  };
  const first = await openWriter(topic, store);
  await fill();
  await until('the first rows are stored', () => store.rows.length > 0);
  const second = await openWriter(topic, store);
  await until('both consumers are members', () => first.ready() && second.ready() && second.lag().size > 0);
  await fill();
  await first.close();
  await until('all rows are stored', () => store.rows.length >= 1600);
  await second.close();
  const expected = (await fixture.read(topic)).map(({ partition, offset }) => `${partition}/${offset}`);
  expect(store.offsets(topic)).toEqual(expected);
  expect(new Set(written).size).toBe(written.length);
});

it('a consumer can be opened while no broker responds, and is not ready', async () => {
  const consumer = await openWriter('test-topic', new TokenStore(), { brokers: ['127.0.0.1:1'] });
  expect(consumer.ready()).toBe(false);
  await consumer.close();
});

it('a consumer reports the lag of a blocked partition, and no lag if only a transaction marker is unread', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const publisher = await openAtomicPublisher({ brokers, name: `${topic}-publisher` });
  const publish = () => publisher.publish([{ topic, key: null, value: Buffer.from('row'), headers: {} }]);
  const store = new TokenStore();
  const gate = Promise.withResolvers<void>();
  store.onWrite = (_name, phase) => (phase === 'before' ? gate.promise : undefined);
  const metrics = createMetrics('test');
  const limits = { rowsMax: 1, bytesMax: 1_000_000, ageMaxMs: 50 };
  const consumer = await openWriter(topic, store, { metrics, limits });
  const lag = async () => {
    const found = /^playline_stream_lag_records\{.*\} (\d+)$/m.exec(await metrics.text());
    return found === null ? null : Number(found[1]);
  };
  for (let i = 0; i < 3; i++) await publish();
  await until('the write is blocked', async () => (await lag()) === 6);
  // Fetching is paused while two blocks wait, so only the end of the log reveals these records.
  for (let i = 0; i < 3; i++) await publish();
  await until('the new end of the log is read', async () => (await lag()) === 12);
  gate.resolve();
  await until('all rows are stored', () => store.rows.length === 6);
  await until('there is no lag', async () => (await lag()) === 0);
  await consumer.close();
  expect(await lag()).toBeNull();
  // The commit follows the last record, so the next owner reads only the marker.
  const next = await openWriter(topic, store, { metrics, limits });
  await until('the next owner is ready', () => next.ready());
  await until('the marker causes no lag', async () => (await lag()) === 0);
  await next.close();
  await publisher.close();
});

it('a consumer reads a new partition within ten seconds', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const read: number[] = [];
  const consumer = await openRecordConsumer({
    brokers,
    groupId: `${topic}-group`,
    topics: [topic],
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    onBatch: async (records) => void read.push(...records.map(({ partition }) => partition)),
  });
  await until('the consumer is a member', () => consumer.ready());
  await fixture.addPartitions(topic, 2);
  // Opened afterwards, because a producer caches the partitions when it starts.
  const lateProducer = await openProducer({ brokers, clientId: 'test' });
  await send(lateProducer, [{ topic, key: null, partition: 1, value: Buffer.from('added') }]);
  await until('the added partition is read', () => read.includes(1), 10_000);
  await consumer.close();
  await lateProducer.close();
});
