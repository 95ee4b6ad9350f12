import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { LogReader, TransactionRecord } from '../../log.ts';
import type { StreamRecord } from '../../ports.ts';
import { send } from '../../test/producer-contract.ts';
import { openProducer } from '../producer/open-producer.ts';
import { type KafkaFixture, openKafkaFixture } from '../test/kafka-fixture.ts';
import { openAtomicPublisher } from './open-atomic-publisher.ts';
import { openLogReader } from './open-log-reader.ts';

let fixture: KafkaFixture;
let reader: LogReader;

beforeAll(async () => {
  fixture = await openKafkaFixture();
  reader = openLogReader({ brokers: fixture.brokers, clientId: 'test' });
});
afterAll(async () => {
  await reader.close();
  await fixture.close();
});

async function readAll(range: { topic: string; partition: number; start: number; end: number }) {
  const records: StreamRecord[] = [];
  for await (const record of reader.read(range)) records.push(record);
  return records;
}
const textsOf = async (topic: string, partition = 0) =>
  (await readAll({ topic, partition, start: 0, end: Number.MAX_SAFE_INTEGER })).map(({ value }) => String(value));
const placed = (topic: string, text: string, partition = 0): TransactionRecord => ({
  topic,
  partition,
  key: null,
  value: Buffer.from(text),
  headers: { of: 'test' },
});

it('reads exactly the asked offsets of a partition, with key, value, headers and time', async () => {
  const topic = await fixture.createTopic({ partitions: 2 });
  const producer = await openProducer({ brokers: fixture.brokers, clientId: 'test' });
  const value = Buffer.alloc(30_000, 'x');
  const before = Date.now();
  for (let batch = 0; batch < 6; batch++)
    await send(
      producer,
      Array.from({ length: 20 }, (_, i) => ({ topic, key: Buffer.from('k'), value, headers: { n: `${batch}/${i}` } })),
    );
  await producer.close();
  const [partition] = (await reader.bounds(topic)).filter(({ end }) => end > 0);
  expect(partition).toMatchObject({ start: 0, end: 120 });
  const found = await readAll({ topic, partition: partition!.partition, start: 7, end: 113 });
  expect(found.map(({ offset }) => offset)).toEqual(Array.from({ length: 106 }, (_, i) => 7 + i));
  expect(found[0]).toMatchObject({ topic, partition: partition!.partition, key: Buffer.from('k'), value });
  expect(String(found[13]!.headers.n)).toBe('1/0');
  for (const { timestampMs } of found) expect(timestampMs).toBeGreaterThanOrEqual(before);
});

it('ends at the end of the log, and knows nothing of a topic that does not exist', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  expect(await readAll({ topic, partition: 0, start: 0, end: 10 })).toEqual([]);
  expect(await reader.bounds(`${topic}-absent`)).toEqual([]);
  expect((await reader.committed(`${topic}-nobody`, topic)).size).toBe(0);
});

it('tells the bounds of several topics at once, and of one that was removed that it has none', async () => {
  const topics = [await fixture.createTopic({ partitions: 3 }), await fixture.createTopic({ partitions: 2 })] as const;
  const publisher = await openAtomicPublisher({ brokers: fixture.brokers, name: `${topics[0]}-publisher` });
  await publisher.publish([placed(topics[0], 'a', 2), placed(topics[1], 'b', 1)]);
  await publisher.close();
  const boundsOf = () => Promise.all([...topics, `${topics[0]}-absent`].map((topic) => reader.bounds(topic)));
  await until('both are decided', async () => (await boundsOf()).flat().filter(({ end }) => end === 2).length === 2);
  const empty = { start: 0, end: 0 };
  const ofFirst = [
    { partition: 0, ...empty },
    { partition: 1, ...empty },
    { partition: 2, start: 0, end: 2 },
  ];
  expect(await boundsOf()).toEqual([
    ofFirst,
    [
      { partition: 0, ...empty },
      { partition: 1, start: 0, end: 2 },
    ],
    [],
  ]);
  await fixture.removeTopic(topics[1]);
  expect(await boundsOf()).toEqual([ofFirst, [], []]);
});

it('publishes to several topics in one step, and readers do not see what was not published as a whole', async () => {
  const [one, other] = [await fixture.createTopic({ partitions: 2 }), await fixture.createTopic({ partitions: 1 })];
  const name = `${one}-publisher`;
  const { brokers } = fixture;
  const stuck = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const zombie = await openAtomicPublisher({
    brokers,
    name,
    beforeCommit: () => {
      sent.resolve();
      return stuck.promise;
    },
  });
  const lost = zombie.publish([placed(one, 'zombie', 1), placed(other, 'zombie')]);
  lost.catch(() => {});
  await sent.promise;
  expect((await reader.bounds(one))[1]).toMatchObject({ end: 0 });

  const heir = await openAtomicPublisher({ brokers, name });
  // Opened is enough: what the heir reads from now on cannot change behind its back.
  stuck.resolve();
  await expect(lost).rejects.toThrow();
  await expect(zombie.publish([placed(other, 'zombie')])).rejects.toThrow();
  await heir.publish([placed(one, 'heir', 1), placed(other, 'heir')]);
  await heir.publish([placed(one, 'again', 1)]);

  // two records of the zombie and of the heir, and the markers of three transactions
  await until('the last marker', async () => (await reader.bounds(one))[1]!.end === 6);
  await until('the other topic', async () => (await textsOf(other)).length > 0);
  expect(await textsOf(one, 1)).toEqual(['heir', 'again']);
  expect(await textsOf(other)).toEqual(['heir']);
  await zombie.close();
  await heir.close();
});

it('publishes more than a batch may hold in one step, and records without a value, and a reader has all of it', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const publisher = await openAtomicPublisher({ brokers: fixture.brokers, name: `${topic}-publisher` });
  const large = 'x'.repeat(60_000);
  const records = Array.from({ length: 40 }, (_, at) => placed(topic, `${at} ${large}`));
  await publisher.publish([...records, { ...placed(topic, ''), key: Buffer.from('gone'), value: null }]);
  await publisher.close();
  const end = await until('it is decided', async () => {
    const [bounds] = await reader.bounds(topic);
    return bounds!.end === (await reader.bounds(topic, { readUncommitted: true }))[0]!.end ? bounds!.end : null;
  });
  const found: StreamRecord[] = [];
  for await (const record of reader.read({ topic, partition: 0, start: 0, end, isWhole: true })) found.push(record);
  expect(found.slice(0, -1).map(({ value }) => String(value))).toEqual(records.map(({ value }) => String(value)));
  expect(found.at(-1)).toMatchObject({ key: Buffer.from('gone'), value: null });
});
