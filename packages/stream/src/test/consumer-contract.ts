import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchHandler, BlockLimits, BlockSink, Consumer, Producer, StreamRecord } from '../ports.ts';
import { RetryableFault } from '../ports.ts';
import { send } from './producer-contract.ts';
import { createTokenSink, TokenStore } from './token-store.ts';

/** The log that the consumers read. Every topic has a dead-letter topic `<topic>.dead`. */
export interface ConsumerHarness {
  producer: Producer;
  createTopic(options: { partitions: number }): Promise<string>;
  read(topic: string): Promise<StreamRecord[]>;
  committed(groupId: string, topic: string): Promise<Map<number, number>>;
  openBlockConsumer(options: {
    groupId: string;
    topics: string[];
    sink: BlockSink;
    limits: BlockLimits;
  }): Promise<Consumer>;
  openRecordConsumer(options: { groupId: string; topics: string[] } & BatchHandler): Promise<Consumer>;
  close(): Promise<void>;
}

const LIMITS: BlockLimits = { rowsMax: 50, bytesMax: 1_000_000, ageMaxMs: 50 };

async function fill(harness: ConsumerHarness, topic: string, texts: readonly string[]): Promise<string[]> {
  await Promise.all(texts.map((text) => send(harness.producer, [{ topic, key: null, value: Buffer.from(text) }])));
  return (await harness.read(topic)).map(({ partition, offset }) => `${partition}/${offset}`);
}

const toOptions = (topic: string, store: TokenStore) => {
  return { groupId: `${topic}-group`, topics: [topic], sink: createTokenSink(store), limits: LIMITS };
};
const numbers = (count: number) => Array.from({ length: count }, (_, i) => `row ${i}`);

/** The guarantees of every block consumer and record consumer, regardless of the log. */
export function consumerContract(name: string, open: () => Promise<ConsumerHarness>): void {
  describe(`consumer contract: ${name}`, () => {
    let harness: ConsumerHarness;
    beforeAll(async () => {
      harness = await open();
    });
    afterAll(() => harness.close());

    it('a block consumer writes every record once and commits the offset after the last record', async () => {
      const topic = await harness.createTopic({ partitions: 3 });
      const expected = await fill(harness, topic, numbers(400));
      const store = new TokenStore();
      const options = toOptions(topic, store);
      const consumer = await harness.openBlockConsumer(options);
      await until('all rows are stored', () => store.rows.length >= expected.length);
      expect(await until('the consumer is ready', () => consumer.ready())).toBe(true);
      await until('there is no lag', () => [...consumer.lag().values()].every((lag) => lag === 0));
      await consumer.close();
      expect(store.offsets(topic)).toEqual(expected);
      const committed = await harness.committed(options.groupId, topic);
      expect([...committed.values()].reduce((sum, offset) => sum + offset, 0)).toBe(400);
    });

    it('a block consumer continues where the previous consumer in its group stopped', async () => {
      const topic = await harness.createTopic({ partitions: 2 });
      const store = new TokenStore();
      const options = { ...toOptions(topic, store), limits: { ...LIMITS, rowsMax: 7 } };
      let expected: string[] = [];
      for (let round = 0; round < 2; round++) {
        const consumer = await harness.openBlockConsumer(options);
        expected = await fill(harness, topic, numbers(90));
        await until('some rows are stored', () => store.rows.length > round * 90);
        await consumer.close();
      }
      const last = await harness.openBlockConsumer(options);
      await until('all rows are stored', () => store.rows.length >= expected.length);
      await last.close();
      expect(store.offsets(topic)).toEqual(expected);
    });

    it('a block consumer publishes unreadable records unchanged as dead letters and continues', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const store = new TokenStore();
      const poison = Buffer.from('poison \u0000 ÿ');
      await send(harness.producer, [
        { topic, key: null, value: Buffer.from('row') },
        { topic, key: Buffer.from('key'), value: poison, headers: { traceparent: '00-1-2-01' } },
        { topic, key: null, value: Buffer.from('refuse me') },
        { topic, key: null, value: Buffer.from('drop me') },
        { topic, key: null, value: Buffer.from('row') },
      ]);
      const options = toOptions(topic, store);
      const consumer = await harness.openBlockConsumer(options);
      await until('both rows are stored', () => store.rows.length >= 2);
      await until(
        'the records are committed',
        async () => (await harness.committed(options.groupId, topic)).get(0) === 5,
      );
      await consumer.close();
      expect(store.offsets(topic)).toEqual(['0/0', '0/4']);
      const deadLetters = await harness.read(`${topic}.dead`);
      expect(deadLetters.map(({ value }) => value)).toEqual([poison, Buffer.from('refuse me')]);
      expect(deadLetters[0]?.key).toEqual(Buffer.from('key'));
      const headers = Object.entries(deadLetters[0]!.headers).map(([header, value]) => [header, String(value)]);
      expect(Object.fromEntries(headers)).toMatchObject({
        reason: `TypeError: cannot read ${poison}`,
        step: 'transform',
        'original-topic': topic,
        'original-partition': '0',
        'original-offset': '1',
        'original-timestamp': expect.stringMatching(/^\d{13}$/),
        traceparent: '00-1-2-01',
      });
    });

    it('a block consumer retries a block with the same offsets until the store accepts the block', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const store = new TokenStore();
      const names: string[] = [];
      store.onWrite = ({ start, end }, phase) => {
        if (phase === 'after' && names.push(`${start}-${end}`) < 3) throw new RetryableFault('the response was lost');
      };
      const expected = await fill(harness, topic, numbers(20));
      const options = toOptions(topic, store);
      const consumer = await harness.openBlockConsumer(options);
      await until(
        'the records are committed',
        async () => (await harness.committed(options.groupId, topic)).get(0) === 20,
      );
      await consumer.close();
      expect(names.slice(0, 3)).toEqual([names[0], names[0], names[0]]);
      expect(store.offsets(topic)).toEqual(expected);
    });

    it('a block consumer pauses only the affected partition after a permanent fault', async () => {
      const topic = await harness.createTopic({ partitions: 3 });
      const store = new TokenStore();
      store.onWrite = ({ partition }, phase) => {
        if (partition === 1 && phase === 'before') throw new Error('unknown column');
      };
      const expected = await fill(harness, topic, numbers(90));
      const options = toOptions(topic, store);
      const consumer = await harness.openBlockConsumer(options);
      await until('the rows of the other partitions are stored', () => store.rows.length >= 60);
      await until('the consumer is not ready', () => !consumer.ready());
      await consumer.close();
      expect(store.offsets(topic)).toEqual(expected.filter((offset) => !offset.startsWith('1/')));
      expect((await harness.committed(options.groupId, topic)).get(1) ?? 0).toBeLessThanOrEqual(0);
    });

    it('a record consumer delivers one batch at a time in order and retries it until it succeeds', async () => {
      const topic = await harness.createTopic({ partitions: 2 });
      const seen: string[] = [];
      const running = new Set<number>();
      let faults = 3;
      const expected = await fill(harness, topic, numbers(200));
      const groupId = `${topic}-group`;
      const revoked: number[] = [];
      const consumer = await harness.openRecordConsumer({
        groupId,
        topics: [topic],
        batchRecordsMax: 16,
        onBatch: async (records, { partition, start, end }) => {
          if (running.has(partition)) throw new Error('two concurrent batches for one partition');
          running.add(partition);
          await new Promise((resolve) => setImmediate(resolve));
          running.delete(partition);
          if (faults-- > 0) throw new RetryableFault('not now');
          expect(start).toBeLessThanOrEqual(records[0]!.offset);
          expect(end).toBeGreaterThan(records.at(-1)!.offset);
          seen.push(...records.map(({ offset }) => `${partition}/${offset}`));
        },
        onRevoke: (_topic, partition) => revoked.push(partition),
      });
      await until('all records are delivered', () => seen.length >= expected.length);
      await until('all records are committed', async () => {
        const committed = await harness.committed(groupId, topic);
        return [...committed.values()].reduce((sum, offset) => sum + offset, 0) === 200;
      });
      await consumer.close();
      for (const partition of ['0', '1']) {
        const inPartition = (all: string[]) => all.filter((offset) => offset.startsWith(`${partition}/`));
        expect(inPartition(seen)).toEqual(inPartition(expected));
      }
      expect(revoked.sort()).toEqual([0, 1]);
    });

    it('a record consumer starts at the offset that its handler returns and never commits backwards', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const groupId = `${topic}-group`;
      await fill(harness, topic, numbers(30));
      const commits: number[] = [];
      const run = async (startAt: (committed: number) => number, last: number) => {
        const seen: number[] = [];
        const consumer = await harness.openRecordConsumer({
          groupId,
          topics: [topic],
          batchRecordsMax: 10,
          onAssign: async ({ committed }) => startAt(committed),
          onBatch: async (records) => {
            commits.push((await harness.committed(groupId, topic)).get(0) ?? 0);
            seen.push(...records.map(({ offset }) => offset));
          },
        });
        await until('the last record is delivered', () => seen.includes(last));
        await until(
          'the records are committed',
          async () => (await harness.committed(groupId, topic)).get(0) === last + 1,
        );
        await consumer.close();
        return seen;
      };
      await run((committed) => committed, 29);
      await send(harness.producer, [{ topic, key: null, value: Buffer.from('one more') }]);
      const reread = await run((committed) => committed - 25, 30);
      expect(reread).toEqual(Array.from({ length: 26 }, (_, i) => i + 5));
      expect(commits).toEqual([...commits].sort((a, b) => a - b));
    });

    it('a record consumer delivers batches after unfinished work but does not commit them', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const groupId = `${topic}-group`;
      const committed = async () => (await harness.committed(groupId, topic)).get(0) ?? 0;
      let unfinished: number | null = 15;
      const run = async () => {
        const seen: number[] = [];
        const bounds: number[] = [];
        const consumer = await harness.openRecordConsumer({
          groupId,
          topics: [topic],
          batchRecordsMax: 10,
          onBatch: async (records, position) => {
            seen.push(...records.map(({ offset }) => offset));
            bounds.push(position.committed);
          },
          unfinishedFrom: () => unfinished,
        });
        return { seen, bounds, close: () => consumer.close() };
      };
      await fill(harness, topic, numbers(30));
      const first = await run();
      await until('the last record is delivered', () => first.seen.includes(29));
      await until('the finished batches are committed', async () => (await committed()) > 0);
      await send(harness.producer, [{ topic, key: null, value: Buffer.from('one more') }]);
      await until('the new record is delivered', () => first.seen.includes(30));
      await first.close();
      expect(await committed()).toBeLessThanOrEqual(15);
      expect(Math.max(...first.bounds)).toBeLessThanOrEqual(15);
      const second = await run();
      await until('the last record is delivered again', () => second.seen.includes(30));
      expect(second.seen[0]).toBe(await committed());
      unfinished = null;
      await send(harness.producer, [{ topic, key: null, value: Buffer.from('the last') }]);
      await until('all records are committed', async () => (await committed()) === 32);
      await second.close();
    });

    it('a record consumer commits a batch when its work ends, even if no further batch arrives', async () => {
      const topic = await harness.createTopic({ partitions: 1 });
      const groupId = `${topic}-group`;
      let unfinished: number | null = 0;
      const reports: (() => void)[] = [];
      const consumer = await harness.openRecordConsumer({
        groupId,
        topics: [topic],
        batchRecordsMax: 10,
        onBatch: async (_, { workEnded }) => void reports.push(workEnded),
        unfinishedFrom: () => unfinished,
      });
      const committed = async () => (await harness.committed(groupId, topic)).get(0) ?? 0;
      await fill(harness, topic, numbers(30));
      await until('every batch is delivered', async () => consumer.lag().get(`${topic}/0`) === 0 && reports.length > 0);
      expect(await committed()).toBeLessThanOrEqual(0);
      unfinished = null;
      for (const workEnded of reports) workEnded();
      await until('all records are committed', async () => (await committed()) === 30);
      await consumer.close();
      reports[0]!();
    });

    it('a record consumer pauses only the affected partition after a permanent fault', async () => {
      const topic = await harness.createTopic({ partitions: 2 });
      const expected = await fill(harness, topic, numbers(40));
      const seen: string[] = [];
      const consumer = await harness.openRecordConsumer({
        groupId: `${topic}-group`,
        topics: [topic],
        onBatch: async (records, { partition }) => {
          if (partition === 0) throw new Error('a bug');
          seen.push(...records.map(({ offset }) => `${partition}/${offset}`));
        },
      });
      await until('the records of the other partition are delivered', () => seen.length >= 20);
      await until('the consumer is not ready', () => !consumer.ready());
      await consumer.close();
      expect(seen).toEqual(expected.filter((offset) => offset.startsWith('1/')));
    });
  });
}
