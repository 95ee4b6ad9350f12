import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OutgoingRecord, Producer, RecordMetadata, StreamRecord } from '../ports.ts';

export interface ProducerHarness {
  producer: Producer;
  /** Creates a separate topic for a test. @param recordBytesMax the topic's maximum record size, if the log has one */
  createTopic(options: { partitions: number; recordBytesMax?: number }): Promise<string>;
  read(topic: string): Promise<StreamRecord[]>;
  close(): Promise<void>;
}

export function send(producer: Producer, records: readonly OutgoingRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
}

/** Sends keyless records with the values `<text> <number>`, and resolves when all are stored. */
export function sendNumbered(
  producer: Producer,
  { topic, text, count }: { topic: string; text: string; count: number },
): Promise<void> {
  const records = Array.from({ length: count }, (_, i) => ({ topic, key: null, value: Buffer.from(`${text} ${i}`) }));
  return send(producer, records);
}

const text = (record: StreamRecord) => record.value?.toString() ?? '';

/** The guarantees of every producer, regardless of the log. */
export function producerContract(name: string, open: () => Promise<ProducerHarness>): void {
  describe(`producer contract: ${name}`, () => {
    let harness: ProducerHarness;
    beforeAll(async () => {
      harness = await open();
    });
    afterAll(() => harness.close());

    it('a producer stores and acknowledges records with key, value and headers', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const key = Buffer.from('key');
      const headers = { reason: 'why – not', binary: Buffer.from([0, 255, 1]), empty: '' };
      await send(harness.producer, [{ topic, key, value: Buffer.from('värde'), headers }]);
      const [record] = await harness.read(topic);
      expect(record?.key).toEqual(key);
      expect(record?.value?.toString()).toBe('värde');
      const found = Object.entries(record!.headers).map(([header, value]) => [header, Buffer.from(value!)]);
      expect(Object.fromEntries(found)).toEqual({
        reason: Buffer.from('why – not'),
        binary: Buffer.from([0, 255, 1]),
        empty: Buffer.alloc(0),
      });
    });

    it('a producer stores each record once and keeps the order per key across many sends', async () => {
      const topic = await harness.createTopic({ partitions: 3 });
      const sends: Promise<void>[] = [];
      const keys = ['a', 'b', 'c', 'd', 'e'].map((name) => Buffer.from(name));
      for (let i = 0; i < 400; i++) {
        const records = keys.map((key) => ({ topic, key, value: Buffer.from(String(i)) }));
        sends.push(send(harness.producer, records));
        if (i % 40 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(sends);
      const records = await harness.read(topic);
      expect(records).toHaveLength(2000);
      for (const key of keys) {
        const withKey = records.filter((record) => record.key?.equals(key));
        expect(new Set(withKey.map(({ partition }) => partition)).size).toBe(1);
        expect(withKey.map(text)).toEqual(Array.from({ length: 400 }, (_, i) => String(i)));
      }
    });

    it('a producer acknowledges records for several topics in one send', async () => {
      const [first, second] = [
        await harness.createTopic({ partitions: 2 }),
        await harness.createTopic({ partitions: 1 }),
      ];
      await send(harness.producer, [
        { topic: first, key: null, value: Buffer.from('message') },
        { topic: second, key: Buffer.from('environment'), value: Buffer.from('link') },
      ]);
      expect((await harness.read(first)).map(text)).toEqual(['message']);
      expect((await harness.read(second)).map(text)).toEqual(['link']);
    });

    it('a producer sends a record to its partition and distinguishes null from an empty value', async () => {
      const topic = await harness.createTopic({ partitions: 3 });
      const key = Buffer.from('key');
      const values = [null, Buffer.alloc(0), Buffer.from('x')];
      for (const partition of [0, 1, 2])
        for (const [offset, value] of values.entries()) {
          const stored = await harness.producer.sendForOffset({ topic, key, partition, value });
          expect(stored).toMatchObject({ partition, offset });
        }
      const found = await harness.read(topic);
      expect(found.map(({ value }) => value)).toEqual([...values, ...values, ...values]);
    });

    it('a producer distributes keyless records evenly across all partitions', async () => {
      const topic = await harness.createTopic({ partitions: 4 });
      const record = { topic, key: null, value: Buffer.from('x') };
      await Promise.all(Array.from({ length: 40 }, () => send(harness.producer, [record])));
      const partitions = (await harness.read(topic)).map(({ partition }) => partition);
      for (let partition = 0; partition < 4; partition++)
        expect(partitions.filter((each) => each === partition)).toHaveLength(10);
    });

    it('a producer fails a record that is too large, but no other record in its batch', async () => {
      const topic = await harness.createTopic({ partitions: 1, recordBytesMax: 20_000 });
      const small = (i: number) => send(harness.producer, [{ topic, key: null, value: Buffer.from(String(i)) }]);
      // One record is sent first, because a new leader may not be ready, and a batch that is rejected because of its
      // size after such a response fails as a whole.
      await small(0);
      const large = send(harness.producer, [{ topic, key: null, value: randomBytes(40_000) }]);
      const outcomes = await Promise.allSettled([small(1), small(2), large, small(3), small(4)]);
      expect(outcomes.map(({ status }) => status)).toEqual([
        'fulfilled',
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
      ]);
      expect((await harness.read(topic)).map(text)).toEqual(['0', '1', '2', '3', '4']);
    });

    it('a producer sends more bytes than one request may contain, in order', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const value = (i: number) => Buffer.concat([Buffer.from(`${i} `), Buffer.alloc(100_000, 'x')]);
      const records = Array.from({ length: 60 }, (_, i) => ({ topic, key: null, value: value(i) }));
      await send(harness.producer, records);
      const found = (await harness.read(topic)).map((record) => Number.parseInt(text(record), 10));
      expect(found).toEqual(Array.from({ length: 60 }, (_, i) => i));
    });

    it('a producer counts the bytes of unacknowledged records and releases them', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const sent = send(harness.producer, [{ topic, key: null, value: Buffer.alloc(5_000) }]);
      expect(harness.producer.bytesHeld).toBeGreaterThanOrEqual(5_000);
      await sent;
      expect(harness.producer.bytesHeld).toBe(0);
    });

    it('a producer returns the offset of a record regardless of the other records in its batch', async () => {
      const topic = await harness.createTopic({ partitions: 3 });
      const sends: Promise<unknown>[] = [];
      const sent: { value: string; stored: Promise<RecordMetadata> }[] = [];
      for (let i = 0; i < 90; i++) {
        const record = { topic, key: Buffer.from(`key ${i % 7}`), value: Buffer.from(`offset ${i}`) };
        sends.push(
          send(
            harness.producer,
            [0, 1, 2].map((n) => ({ ...record, value: Buffer.from(`other ${i} ${n}`) })),
          ),
        );
        sent.push({ value: `offset ${i}`, stored: harness.producer.sendForOffset(record) });
        if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(sends);
      const records = await harness.read(topic);
      for (const { value, stored } of sent) {
        const { partition, offset } = records.find((record) => text(record) === value)!;
        expect(await stored).toMatchObject({ partition, offset });
      }
      expect(harness.producer.bytesHeld).toBe(0);
    });

    it('a producer returns no offset for a record that is not stored', async () => {
      const topic = await harness.createTopic({ partitions: 1, recordBytesMax: 20_000 });
      const stored = harness.producer.sendForOffset({ topic, key: null, value: randomBytes(40_000) });
      await expect(stored).rejects.toThrow();
      expect(await harness.read(topic)).toEqual([]);
    });

    it('a producer is ready if its log responds', async () => {
      expect(await harness.producer.ready()).toBe(true);
    });

    it('a producer completes a send without records', async () => {
      await send(harness.producer, []);
    });
  });
}
