import { createLogger, createMetrics } from '@playline/runtime';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { sendNumbered } from '../../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { openBlockConsumer } from '../index.ts';
import { useKafka } from '../test/kafka-fixture.ts';

const SESSION_TIMEOUT_MS = 3_000;
const BEFORE = 60;

const { fixture, producer } = await useKafka();

const fill = (topic: string, text: string, count: number) => sendNumbered(producer, { topic, text, count });

function openStore(topic: string) {
  const store = new TokenStore();
  const lines: string[] = [];
  const logger = createLogger({ service: 'test', level: 'warn' }, { write: (line: string) => void lines.push(line) });
  const metrics = createMetrics('test');
  const groupId = `${topic}-group`;
  const open = () =>
    openBlockConsumer({
      brokers: fixture.brokers,
      groupId,
      topics: [topic],
      sessionTimeoutMs: SESSION_TIMEOUT_MS,
      logger,
      metrics,
      sink: createTokenSink(store),
      deadLetters: producer,
      limits: { rowsMax: 20, bytesMax: 1_000_000, ageMaxMs: 50 },
    });
  const committed = async () => (await fixture.committed(groupId, topic))[0];
  const newRows = () => store.rows.map(({ text }) => text).filter((text) => text.startsWith('new'));
  const expectPause = (reason: RegExp) => {
    const line = lines.find((each) => each.includes('partition paused')) ?? '';
    expect(line).toMatch(reason);
    expect(line).toContain(`npm run offsets -- accept --group ${groupId} --topic ${topic} --partition 0`);
  };
  return { groupId, store, metrics, open, committed, newRows, expectPause };
}

/** Reads and commits all records, then recreates the topic with `after` new records and restores the old commit. */
async function replaceLog(after: number) {
  const topic = await fixture.createTopic({ partitions: 1 });
  const parts = openStore(topic);
  await fill(topic, 'old', BEFORE);
  const first = await parts.open();
  await until('the records are committed', async () => (await parts.committed())?.offset === BEFORE);
  await first.close();
  const { metadata } = (await parts.committed())!;
  await fixture.recreateTopic(topic);
  await fill(topic, 'new', after);
  await fixture.commit(parts.groupId, { topic, offset: BEFORE, metadata: metadata ?? '' });
  return { topic, ...parts };
}

it.each([
  ['ends before the committed offset', 30, /the log ends at 30, before the last read offset/],
  ['has grown past the committed offset', 80, /the record before the committed offset 60 is not the one that was read/],
])('a replaced log that %s is not read, and its commit is not changed', async (_, after, reason) => {
  const { topic, open, metrics, newRows, committed, expectPause } = await replaceLog(after);
  const consumer = await open();
  await until('the partition is paused', async () =>
    /^playline_stream_stopped_partitions\{.*\} 1$/m.test(await metrics.text()),
  );
  expect(consumer.ready()).toBe(false);
  await fill(topic, 'new and later', 10);
  await consumer.close();
  expect(newRows()).toEqual([]);
  expect((await committed())?.offset).toBe(BEFORE);
  expectPause(reason);
});

it('when retention deletes the start of a log while it is read, only the deleted records are skipped', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const { store, open, metrics, committed } = openStore(topic);
  const gate = Promise.withResolvers<void>();
  store.onWrite = (_name, phase) => (phase === 'before' ? gate.promise : undefined);
  await fill(topic, 'first', 60);
  const consumer = await open();
  // One block of 20 records is being written and two are waiting, so nothing is fetched.
  await until('two blocks are waiting', () => [...consumer.lag().values()].some((lag) => lag === 60));
  await fill(topic, 'second', 60);
  await fixture.expire(topic, 100);
  gate.resolve();
  await until('the last row is stored', () => store.rows.some(({ text }) => text === 'second 59'));
  await until('the records are committed', async () => (await committed())?.offset === 120);
  expect(consumer.ready()).toBe(true);
  expect(await metrics.text()).toMatch(/^playline_stream_offsets_skipped_total\{.*\} 40$/m);
  await consumer.close();
  const expected = [...Array(60).keys(), ...Array.from({ length: 20 }, (_, i) => 100 + i)];
  expect(store.offsets(topic)).toEqual(expected.map((offset) => `0/${offset}`));
  // A commit by kafkajs itself would have no metadata.
  expect((await committed())?.metadata).toContain('"m":');
});

it('a topic that is recreated while its writer fetches nothing is not read', async () => {
  const topic = await fixture.createTopic({ partitions: 1 });
  const { store, open, newRows, expectPause } = openStore(topic);
  const gate = Promise.withResolvers<void>();
  store.onWrite = (_name, phase) => (phase === 'before' ? gate.promise : undefined);
  await fill(topic, 'old', BEFORE);
  const consumer = await open();
  await until('two blocks are waiting', () => [...consumer.lag().values()].some((lag) => lag === BEFORE));
  // The new log extends past the member's offset, so that no batch precedes or overlaps the offset.
  await fixture.recreateTopic(topic);
  await fill(topic, 'new', BEFORE + 40);
  gate.resolve();
  await until('the partition is paused', () => !consumer.ready() || newRows().length > 0);
  await consumer.close();
  expect(newRows()).toEqual([]);
  expectPause(/the log was truncated and has grown again, or was replaced/);
});
