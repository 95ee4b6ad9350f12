import { createLogger, createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseMetadata } from '../../partitions/intent.ts';
import { decisionGroupOf, toDecisionMetadata } from '../../partitions/offset-decision.ts';
import type { Producer } from '../../ports.ts';
import { sendNumbered } from '../../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { openBlockConsumer, openRecordConsumer } from '../index.ts';
import { openProducer } from '../producer/open-producer.ts';
import { type KafkaFixture, openKafkaFixture } from '../test/kafka-fixture.ts';

const SESSION_TIMEOUT_MS = 3_000;
const BEFORE = 50;

describe('a log that is not the one whose offset was committed', () => {
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

  function openStore(topic: string) {
    const store = new TokenStore();
    const lines: string[] = [];
    const logger = createLogger({ service: 'test', level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const metrics = createMetrics('test');
    const options = { brokers: fixture.brokers, groupId: `${topic}-group`, topics: [topic], logger, metrics };
    const open = () =>
      openBlockConsumer({
        ...options,
        sink: createTokenSink(store),
        deadLetters: producer,
        sessionTimeoutMs: SESSION_TIMEOUT_MS,
        limits: { rowsMax: 20, bytesMax: 1_000_000, ageMaxMs: 50 },
      });
    return { ...options, store, lines, open };
  }

  /** Everything is read and committed, then the log is lost and `after` records come into the new one. */
  async function replaceLog(after: number) {
    const topic = await fixture.createTopic({ partitions: 1 });
    const parts = openStore(topic);
    await fill(topic, 'old', BEFORE);
    const first = await parts.open();
    const committed = async () => (await fixture.committed(parts.groupId, topic))[0];
    await until('the commit', async () => (await committed())?.offset === BEFORE);
    await first.close();
    const { metadata } = (await committed())!;
    await fixture.recreateTopic(topic);
    await fill(topic, 'new', after);
    await fixture.commit(parts.groupId, { topic, offset: BEFORE, metadata: metadata ?? '' });
    const stored = () => parts.store.rows.map(({ text }) => text).filter((text) => text.startsWith('new'));
    return { topic, ...parts, stored, committed };
  }

  it.each([
    ['ends before what was committed', 30, /the log ends at 30, before what was read/],
    ['has grown past what was committed', 80, /stands another record than the one that was read/],
  ])('and that %s is not read, says why, and leaves the commit as it is', async (_, after, words) => {
    const { topic, open, lines, metrics, stored, committed, groupId } = await replaceLog(after);
    const consumer = await open();
    await until('a partition that stands', async () =>
      /^playline_stream_stopped_partitions\{.*\} 1$/m.test(await metrics.text()),
    );
    expect(consumer.ready()).toBe(false);
    await fill(topic, 'new and later', 10);
    await consumer.close();
    expect(stored()).toEqual([]);
    expect((await committed())?.offset).toBe(BEFORE);
    const told = lines.find((line) => line.includes('the partition has stopped')) ?? '';
    expect(told).toMatch(words);
    expect(told).toContain(`npm run offsets -- accept --group ${groupId} --topic ${topic} --partition 0`);
  });

  it('is read further once an operator has decided, with members in the group, and none of its rows is taken for an old one', async () => {
    const { topic, open, stored, committed, groupId } = await replaceLog(BEFORE);
    const consumer = await open();
    await until('a partition that stands', async () => !consumer.ready() && consumer.lag().size > 0);
    const { metadata } = (await committed())!;
    const forCommit = { committed: BEFORE, mark: parseMetadata(metadata, BEFORE).mark };
    const decision = { from: 0, forCommit, decidedAtMs: Date.now(), replaced: [{ start: 0, end: BEFORE }] };
    const at = { topic, offset: 0, metadata: toDecisionMetadata(decision) };
    await fixture.commit(decisionGroupOf(groupId), at);
    await until('every new row', () => stored().length >= BEFORE);
    await until('the commit', async () => (await committed())?.offset === BEFORE);
    expect(consumer.ready()).toBe(true);
    await consumer.close();
    // A block's rows stand part by part.
    expect(stored().sort()).toEqual(Array.from({ length: BEFORE }, (_, i) => `new ${i}`).sort());
  });

  it('is not delivered to a record consumer either', async () => {
    const { topic, groupId } = await replaceLog(80);
    const seen: number[] = [];
    const consumer = await openRecordConsumer({
      brokers: fixture.brokers,
      groupId,
      topics: [topic],
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      onBatch: async (records) => void seen.push(...records.map(({ offset }) => offset)),
    });
    await until('the assignment', () => consumer.lag().size > 0);
    await fill(topic, 'new and later', 10);
    await until('a partition that stands', () => !consumer.ready());
    await consumer.close();
    expect(seen).toEqual([]);
  });

  it('that loses its beginning while it is read costs only the records that are gone', async () => {
    const topic = await fixture.createTopic({ partitions: 1 });
    const { store, open, metrics, groupId } = openStore(topic);
    const gate = Promise.withResolvers<void>();
    store.onWrite = (_name, moment) => (moment === 'before' ? gate.promise : undefined);
    await fill(topic, 'first', 60);
    const consumer = await open();
    // Blocks of 20: one is written, others wait, so nothing more is fetched.
    await until('blocks that wait', () => [...consumer.lag().values()].some((lag) => lag === 60));
    await fill(topic, 'second', 60);
    await fixture.expire(topic, 100);
    gate.resolve();
    await until('the last row', () => store.rows.some(({ text }) => text === 'second 59'));
    await until('the commit', async () => (await fixture.committed(groupId, topic))[0]?.offset === 120);
    expect(consumer.ready()).toBe(true);
    expect(await metrics.text()).toMatch(/^playline_stream_offsets_skipped_total\{.*\} 40$/m);
    await consumer.close();
    const expected = [...Array(60).keys(), ...Array.from({ length: 20 }, (_, i) => 100 + i)];
    expect(store.offsets(topic)).toEqual(expected.map((offset) => `0/${offset}`));
    // No commit of kafkajs's own: that has no metadata.
    expect((await fixture.committed(groupId, topic))[0]?.metadata).toContain('"m":');
  });
});
