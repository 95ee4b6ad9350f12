import { afterAll, beforeAll, expect, it } from 'vitest';
import { send } from '../test/producer-contract.ts';
import { readTopic } from './log/open-log-reader.ts';
import { openProducer } from './producer/open-producer.ts';
import { type KafkaFixture, openKafkaFixture } from './test/kafka-fixture.ts';

let kafka: KafkaFixture;
beforeAll(async () => {
  kafka = await openKafkaFixture();
});
afterAll(() => kafka.close());

async function write(topic: string, texts: readonly string[]): Promise<void> {
  const producer = await openProducer({ brokers: kafka.brokers, clientId: 'test' });
  const records = texts.map((text) => ({ topic, key: Buffer.from(text.slice(0, 1)), value: Buffer.from(text) }));
  await send(producer, records);
  await producer.close();
}

const textsOf = (records: readonly { value: Buffer | null }[]) => records.map(({ value }) => String(value));

it('readTopic reads every partition to its end in the order of the log, and from its start each time', async () => {
  const topic = await kafka.createTopic({ partitions: 3 });
  expect(await readTopic({ brokers: kafka.brokers, topic })).toEqual([]);
  const texts = Array.from({ length: 200 }, (_, i) => `${i % 7}-${String(i).padStart(3, '0')}`);
  await write(topic, texts);
  for (let round = 0; round < 2; round++) {
    const records = await readTopic({ brokers: kafka.brokers, topic });
    expect(textsOf(records).toSorted()).toEqual(texts.toSorted());
    for (let key = 0; key < 7; key++) {
      const own = textsOf(records.filter((record) => String(record.key) === String(key)));
      expect(own).toEqual(own.toSorted());
    }
  }
});

it('readTopic fails for an absent topic, and while no broker answers', async () => {
  await expect(readTopic({ brokers: kafka.brokers, topic: 'absent' })).rejects.toThrow('no topic absent');
  await expect(readTopic({ brokers: ['127.0.0.1:1'], topic: 'any' })).rejects.toThrow();
});
