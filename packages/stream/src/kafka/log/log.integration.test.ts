import { until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import type { TransactionRecord } from '../../log.ts';
import type { StreamRecord } from '../../ports.ts';
import { send } from '../../test/producer-contract.ts';
import { useKafka } from '../test/kafka-fixture.ts';
import { openAtomicPublisher } from './open-atomic-publisher.ts';
import { openLogReader, readTopic } from './open-log-reader.ts';
import { readTopicSettings } from './topic-settings.ts';

const { fixture, producer } = await useKafka();
const { brokers } = fixture;
const reader = openLogReader({ brokers, clientId: 'test' });
afterAll(() => reader.close());

async function readAll(range: { topic: string; partition: number; start: number; end: number }) {
  const records: StreamRecord[] = [];
  for await (const record of reader.read(range)) records.push(record);
  return records;
}
const textsOf = async (topic: string, partition = 0) =>
  (await readAll({ topic, partition, start: 0, end: Number.MAX_SAFE_INTEGER })).map(({ value }) => String(value));
const toRecord = (topic: string, text: string, partition = 0): TransactionRecord => ({
  topic,
  partition,
  key: null,
  value: Buffer.from(text),
  headers: { source: 'test' },
});

it('the log reader returns exactly the requested offsets, with key, value, headers and timestamp', async () => {
  const topic = await fixture.createTopic({ partitions: 2 });
  const value = Buffer.alloc(30_000, 'x');
  const before = Date.now();
  for (let batch = 0; batch < 6; batch++)
    await send(
      producer,
      Array.from({ length: 20 }, (_, i) => ({ topic, key: Buffer.from('k'), value, headers: { n: `${batch}/${i}` } })),
    );
  const [partition] = (await reader.bounds(topic)).filter(({ end }) => end > 0);
  expect(partition).toMatchObject({ start: 0, end: 120 });
  const found = await readAll({ topic, partition: partition!.partition, start: 7, end: 113 });
  expect(found.map(({ offset }) => offset)).toEqual(Array.from({ length: 106 }, (_, i) => 7 + i));
  expect(found[0]).toMatchObject({ topic, partition: partition!.partition, key: Buffer.from('k'), value });
  expect(String(found[13]!.headers.n)).toBe('1/0');
  for (const { timestampMs } of found) expect(timestampMs).toBeGreaterThanOrEqual(before);
});

it('topic settings are those that were set on existing topics, without defaults', async () => {
  const topic = await fixture.createTopic({ partitions: 1, recordBytesMax: 4_096, logAppendTime: true });
  const options = { brokers, clientId: 'test' };
  expect(await readTopicSettings(options, [topic, `${topic}-absent`])).toEqual(
    new Map([[topic, { 'max.message.bytes': '4096', 'message.timestamp.type': 'LogAppendTime' }]]),
  );
  expect(await readTopicSettings(options, [`${topic}-absent`])).toEqual(new Map());
});

it('the log reader stops at the end of the log and returns nothing for a missing topic or group', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  expect(await readAll({ topic, partition: 0, start: 0, end: 10 })).toEqual([]);
  expect(await reader.bounds(`${topic}-absent`)).toEqual([]);
  expect((await reader.committed(`${topic}-absent`, topic)).size).toBe(0);
});

it('the log reader returns the bounds of several topics in one call, and no bounds for a deleted topic', async () => {
  const topics = [await fixture.createTopic({ partitions: 3 }), await fixture.createTopic({ partitions: 2 })] as const;
  const publisher = await openAtomicPublisher({ brokers, name: `${topics[0]}-publisher` });
  await publisher.publish([toRecord(topics[0], 'a', 2), toRecord(topics[1], 'b', 1)]);
  await publisher.close();
  const boundsOf = () => Promise.all([...topics, `${topics[0]}-absent`].map((topic) => reader.bounds(topic)));
  await until(
    'both transactions are stable',
    async () => (await boundsOf()).flat().filter(({ end }) => end === 2).length === 2,
  );
  const toBounds = (ends: number[]) => ends.map((end, partition) => ({ partition, start: 0, end }));
  const firstTopicBounds = toBounds([0, 0, 2]);
  expect(await boundsOf()).toEqual([firstTopicBounds, toBounds([0, 2]), []]);
  await fixture.removeTopic(topics[1]);
  expect(await boundsOf()).toEqual([firstTopicBounds, [], []]);
});

it('an atomic publisher publishes to several topics in one transaction and fences its predecessor', async () => {
  const [first, second] = [await fixture.createTopic({ partitions: 2 }), await fixture.createTopic({ partitions: 1 })];
  const name = `${first}-publisher`;
  const stuck = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const beforeCommit = () => {
    sent.resolve();
    return stuck.promise;
  };
  const zombie = await openAtomicPublisher({ brokers, name, beforeCommit });
  const fenced = zombie.publish([toRecord(first, 'zombie', 1), toRecord(second, 'zombie')]);
  fenced.catch(() => {});
  await sent.promise;
  expect((await reader.bounds(first))[1]).toMatchObject({ end: 0 });

  const successor = await openAtomicPublisher({ brokers, name });
  stuck.resolve();
  await expect(fenced).rejects.toThrow();
  await expect(zombie.publish([toRecord(second, 'zombie')])).rejects.toThrow();
  await successor.publish([toRecord(first, 'successor', 1), toRecord(second, 'successor')]);
  await successor.publish([toRecord(first, 'again', 1)]);

  // Three records from the zombie and the successor, and the markers of three transactions.
  await until('the last marker is written', async () => (await reader.bounds(first))[1]!.end === 6);
  await until('the second topic has records', async () => (await textsOf(second)).length > 0);
  expect(await textsOf(first, 1)).toEqual(['successor', 'again']);
  expect(await textsOf(second)).toEqual(['successor']);
  await zombie.close();
  await successor.close();
});

it('an atomic publisher can publish more bytes than fit into a batch, and a record without a value', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const publisher = await openAtomicPublisher({ brokers, name: `${topic}-publisher` });
  const large = 'x'.repeat(60_000);
  const records = Array.from({ length: 40 }, (_, at) => toRecord(topic, `${at} ${large}`));
  await publisher.publish([...records, { ...toRecord(topic, ''), key: Buffer.from('gone'), value: null }]);
  await publisher.close();
  const end = await until('the transaction is committed', async () => {
    const [bounds] = await reader.bounds(topic);
    return bounds!.end === (await reader.bounds(topic, { readUncommitted: true }))[0]!.end ? bounds!.end : null;
  });
  const found: StreamRecord[] = [];
  for await (const record of reader.read({ topic, partition: 0, start: 0, end, isWhole: true })) found.push(record);
  expect(found.slice(0, -1).map(({ value }) => String(value))).toEqual(records.map(({ value }) => String(value)));
  expect(found.at(-1)).toMatchObject({ key: Buffer.from('gone'), value: null });
});

it('every call of readTopic reads all partitions from start to end in log order', async () => {
  const topic = await fixture.createTopic({ partitions: 3 });
  expect(await readTopic({ brokers, topic })).toEqual([]);
  const texts = Array.from({ length: 200 }, (_, i) => `${i % 7}-${String(i).padStart(3, '0')}`);
  await send(
    producer,
    texts.map((text) => ({ topic, key: Buffer.from(text.slice(0, 1)), value: Buffer.from(text) })),
  );
  for (let round = 0; round < 2; round++) {
    const records = await readTopic({ brokers, topic });
    expect(records.map(({ value }) => String(value)).toSorted()).toEqual(texts.toSorted());
    for (let key = 0; key < 7; key++) {
      const withKey = records.filter((record) => String(record.key) === String(key)).map(({ value }) => String(value));
      expect(withKey).toEqual(withKey.toSorted());
    }
  }
});

it('readTopic fails if the topic does not exist or no broker responds', async () => {
  await expect(readTopic({ brokers, topic: 'absent' })).rejects.toThrow('Topic absent does not exist');
  await expect(readTopic({ brokers: ['127.0.0.1:1'], topic: 'any' })).rejects.toThrow();
});
