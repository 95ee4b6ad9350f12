import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

describe('readTopic', () => {
  it('reads every partition to its end, each in the order of the log', async () => {
    const topic = await kafka.createTopic({ partitions: 3 });
    const texts = Array.from({ length: 200 }, (_, i) => `${i % 7}-${String(i).padStart(3, '0')}`);
    await write(topic, texts);
    const records = await readTopic({ brokers: kafka.brokers, topic });
    expect(textsOf(records).toSorted()).toEqual(texts.toSorted());
    for (let key = 0; key < 7; key++) {
      const own = textsOf(records.filter((record) => String(record.key) === String(key)));
      expect(own).toEqual(own.toSorted());
    }
  });

  it('gives nothing for an empty topic, and reads again from the start', async () => {
    const topic = await kafka.createTopic({ partitions: 2 });
    expect(await readTopic({ brokers: kafka.brokers, topic })).toEqual([]);
    await write(topic, ['a']);
    expect(textsOf(await readTopic({ brokers: kafka.brokers, topic }))).toEqual(['a']);
    expect(textsOf(await readTopic({ brokers: kafka.brokers, topic }))).toEqual(['a']);
  });

  it('says that there is no such topic, and that the brokers do not answer', async () => {
    await expect(readTopic({ brokers: kafka.brokers, topic: 'absent' })).rejects.toThrow('no topic absent');
    await expect(readTopic({ brokers: ['127.0.0.1:1'], topic: 'any' })).rejects.toThrow();
  });
});
