import { createLogger, createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Producer } from '../../ports.ts';
import { sendNumbered } from '../../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { openBlockConsumer, openRecordConsumer } from '../index.ts';
import { openProducer } from '../producer/open-producer.ts';
import { type KafkaFixture, openKafkaFixture } from '../test/kafka-fixture.ts';

const READ = 60;

describe('a topic that is deleted and made anew while a member does not fetch it, and that has grown past its place', () => {
  let fixture: KafkaFixture;
  let producer: Producer;
  beforeAll(async () => {
    fixture = await openKafkaFixture();
    producer = await openProducer({ brokers: fixture.brokers, clientId: 'test' });
  });
  afterAll(async () => {
    await producer.close();
    await fixture.close();
  });

  const fill = (topic: string, text: string, count: number) => sendNumbered(producer, { topic, text, count });

  function listen() {
    const lines: string[] = [];
    const logger = createLogger({ service: 'test', level: 'warn' }, { write: (line: string) => void lines.push(line) });
    return { lines, logger, stopped: () => lines.find((line) => line.includes('the partition has stopped')) ?? '' };
  }

  /** The new log's batches meet at the member's place: nothing in the one that it reads next is older or overlaps. */
  async function remake(topic: string) {
    await fixture.recreateTopic(topic);
    await fill(topic, 'new', READ);
    await fill(topic, 'new and later', 40);
  }

  it('is not read further by a writer, which says why, and how to decide', async () => {
    const topic = await fixture.createTopic({ partitions: 1 });
    const { logger, stopped } = listen();
    const store = new TokenStore();
    const gate = Promise.withResolvers<void>();
    store.onWrite = (_name, moment) => (moment === 'before' ? gate.promise : undefined);
    await fill(topic, 'old', READ);
    const consumer = await openBlockConsumer({
      brokers: fixture.brokers,
      groupId: `${topic}-group`,
      topics: [topic],
      sessionTimeoutMs: 3_000,
      logger,
      sink: createTokenSink(store),
      deadLetters: producer,
      metrics: createMetrics('test'),
      limits: { rowsMax: 20, bytesMax: 1_000_000, ageMaxMs: 50 },
    });
    // One block of 20 is written and two wait, so nothing is fetched.
    await until('blocks that wait', () => [...consumer.lag().values()].some((lag) => lag === READ));
    await remake(topic);
    gate.resolve();
    await until('a word about it', () => !consumer.ready() || store.rows.some(({ text }) => text.startsWith('new')));
    await consumer.close();
    expect(store.rows.filter(({ text }) => text.startsWith('new'))).toEqual([]);
    expect(stopped()).toContain('it lost its end and has grown again, or was exchanged');
    expect(stopped()).toContain(`npm run offsets -- accept --group ${topic}-group --topic ${topic} --partition 0`);
  });

  it('is not delivered to a record consumer', async () => {
    const topic = await fixture.createTopic({ partitions: 1 });
    const { logger, stopped } = listen();
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    await fill(topic, 'old', READ);
    const consumer = await openRecordConsumer({
      brokers: fixture.brokers,
      groupId: `${topic}-group`,
      topics: [topic],
      sessionTimeoutMs: 3_000,
      logger,
      batchRecordsMax: 5,
      onBatch: async (records) => {
        await gate.promise;
        seen.push(...records.map(({ value }) => `${value}`));
      },
    });
    await until('batches that wait', () => [...consumer.lag().values()].some((lag) => lag === READ));
    await remake(topic);
    gate.resolve();
    await until('a word about it', () => !consumer.ready() || seen.some((text) => text.startsWith('new')));
    await consumer.close();
    expect(seen.filter((text) => text.startsWith('new'))).toEqual([]);
    expect(stopped()).toContain('it lost its end and has grown again, or was exchanged');
  });
});
