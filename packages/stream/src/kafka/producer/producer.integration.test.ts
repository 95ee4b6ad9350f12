import { until } from '@playline/testkit';
import { afterEach, expect, it, vi } from 'vitest';
import { producerContract, send } from '../../test/producer-contract.ts';
import { useKafka } from '../test/kafka-fixture.ts';
import { openProducer } from './open-producer.ts';

afterEach(() => vi.useRealTimers());

const { fixture, producer } = await useKafka();

producerContract('kafka', async () => ({ ...fixture, producer, close: async () => {} }));

it.each([true, false])('a producer returns log-append times if the topic has them: %s', async (logAppendTime) => {
  const topic = await fixture.createTopic({ partitions: 2, logAppendTime });
  const record = { topic, key: Buffer.from('k'), value: Buffer.from('x') };
  const returned = await Promise.all([producer.sendForOffset(record), producer.sendForOffset(record)]);
  const stored = (await fixture.read(topic)).map(({ partition, offset, timestampMs }) => {
    return { partition, offset, loggedAtMs: logAppendTime ? timestampMs : null };
  });
  expect(returned).toEqual(stored);
});

it('a producer fails records for a topic that does not exist and stores all other records', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const record = { key: null, value: Buffer.from('x') };
  const absent = send(producer, [{ ...record, topic: 'test-absent-topic' }]);
  await expect(absent).rejects.toMatchObject({ name: 'ProduceFault', code: 'UNKNOWN_TOPIC' });
  await send(producer, [{ ...record, topic }]);
  expect(producer.bytesHeld).toBe(0);
});

it('a producer stores records for a new topic while it sends to another topic', async () => {
  const topics = [await fixture.createTopic({ partitions: 1 }), await fixture.createTopic({ partitions: 1 })] as const;
  const producer = await openProducer({ brokers: fixture.brokers, clientId: 'test', deliveryTimeoutMs: 5_000 });
  const record = { key: null, value: Buffer.from('x') };
  await send(producer, [{ ...record, topic: topics[0] }]);
  const sending = send(producer, [{ ...record, topic: topics[0] }]);
  await new Promise(setImmediate);
  await Promise.all([sending, send(producer, [{ ...record, topic: topics[1] }])]);
  expect((await fixture.read(topics[1])).length).toBe(1);
  await producer.close();
});

const MINUTE_MS = 60_000;

it('a producer sends to an added partition after a minute', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const producer = await openProducer({ brokers: fixture.brokers, clientId: 'test' });
  const sendOne = async () => {
    await send(producer, [{ topic, key: null, value: Buffer.from('x') }]);
    return new Set((await fixture.read(topic)).map(({ partition }) => partition));
  };
  await sendOne();
  await fixture.addPartitions(topic, 2);
  const now = performance.now.bind(performance);
  let minutes = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + minutes * MINUTE_MS);
  const sendAfterMinute = async () => {
    minutes += 1;
    return (await sendOne()).has(1);
  };
  try {
    // A busy broker may not have a leader for the partition in the first minute.
    await until('the new partition has records', sendAfterMinute, 100 * MINUTE_MS);
  } finally {
    clock.mockRestore();
    await producer.close();
  }
});

it('a producer without a broker is not ready, and its records fail at the delivery timeout', async () => {
  const producer = await openProducer({ brokers: ['127.0.0.1:1'], clientId: 'test', deliveryTimeoutMs: 500 });
  expect(await producer.ready()).toBe(false);
  const sent = send(producer, [{ topic: 'any', key: null, value: Buffer.from('x') }]);
  await expect(sent).rejects.toMatchObject({ code: 'DELIVERY_TIMEOUT' });
  expect(producer.bytesHeld).toBe(0);
  await producer.close();
});

it("a producer's record fails at the caller's deadline, long before the delivery timeout", async () => {
  const producer = await openProducer({ brokers: ['127.0.0.1:1'], clientId: 'test' });
  const startMs = performance.now();
  const sent = producer.sendForOffset({ topic: 'any', key: null, value: Buffer.from('x') }, { attemptsMaxMs: 300 });
  await expect(sent).rejects.toMatchObject({ code: 'DELIVERY_TIMEOUT' });
  expect(performance.now() - startMs).toBeLessThan(10_000);
  expect(producer.bytesHeld).toBe(0);
  await producer.close();
});

it.each([-1, 1])('the delivery timeout does not change when the system clock is shifted by %i h', async (hours) => {
  const producer = await openProducer({ brokers: ['127.0.0.1:1'], clientId: 'test', deliveryTimeoutMs: 800 });
  const startMs = performance.now();
  const sent = send(producer, [{ topic: 'any', key: null, value: Buffer.from('x') }]);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 });
  await expect(sent).rejects.toMatchObject({ code: 'DELIVERY_TIMEOUT' });
  expect(performance.now() - startMs).toBeGreaterThan(700);
  await producer.close();
});
