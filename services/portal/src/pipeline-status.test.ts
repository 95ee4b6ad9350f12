import { frameRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { messageRecordOf } from '@playline/testkit/message-record';
import { expect, it } from 'vitest';
import { createCountingLog } from './live/test/counting-log.ts';
import { countOpenDeadLetters, createCachedRead, createPipelineStatus, readWriterDelay } from './pipeline-status.ts';

const MESSAGES = TOPICS.messages.name;
const KEY = Buffer.alloc(16, 7);

function open() {
  const log = createMemoryLog();
  const counted = createCountingLog(log);
  const producer = log.openProducer();
  const add = (topic: string, record: { key?: Buffer | null; value?: Buffer; headers?: Record<string, string> } = {}) =>
    producer.sendForOffset({ topic, partition: 0, key: null, value: Buffer.alloc(1), ...record });
  const schemaOf = async () => messageRecordCodec.schema;
  const parts = { reader: counted.reader, registry: { schemaOf }, topicPrefix: '', writerGroup: 'event-writer' };
  return { counted, add, status: createPipelineStatus(parts) };
}

it('readWriterDelay returns the number of uncommitted messages and the time of the oldest', async () => {
  const { counted, add } = open();
  const read = () => readWriterDelay(counted.reader, MESSAGES, 'event-writer');
  expect(await read()).toEqual({ waiting: 0, oldestMs: null });
  const beforeMs = Date.now();
  for (let index = 0; index < 3; index++) await add(MESSAGES);
  const delay = await read();
  expect(delay.waiting).toBe(3);
  expect(delay.oldestMs).toBeGreaterThanOrEqual(beforeMs - 1);
  counted.committed.set(0, 2);
  expect((await read()).waiting).toBe(1);
  counted.committed.set(0, 3);
  expect(await read()).toEqual({ waiting: 0, oldestMs: null });
});

const deadLetterTopic = deadLetterTopicOf(MESSAGES);

it('openDeadLetters counts open dead letters per environment', async () => {
  const { add, status } = open();
  await add(deadLetterTopic, { key: Buffer.concat([Buffer.from('demo'), KEY]) });
  await add(deadLetterTopic, { key: Buffer.concat([Buffer.from('demo-2'), KEY]) });
  const record = messageRecordOf('level_started', { environmentId: 'demo-2' });
  const headers = { 'original-topic': MESSAGES, 'original-partition': '0', 'original-offset': '9' };
  await add(deadLetterTopic, { value: frameRecord(1, messageRecordCodec.encode(record)), headers });
  await add(deadLetterTopicOf(TOPICS.identityLinks.name), { key: Buffer.from('demo') });
  await add(deadLetterTopicOf(TOPICS.accounts.name), { key: Buffer.from('demo') });
  await add(deadLetterTopic, { headers: { 'settled-offset': '0' } });
  const { total, byEnvironment, isComplete } = await status.openDeadLetters();
  expect([total, Object.fromEntries(byEnvironment), isComplete]).toEqual([4, { demo: 1, 'demo-2': 2 }, true]);
});

it('countOpenDeadLetters reads a limited number of records and reports that the count is incomplete', async () => {
  const { counted, add } = open();
  for (let index = 0; index < 7; index++) await add(deadLetterTopic);
  const counts = countOpenDeadLetters(counted.reader, [MESSAGES], async () => null, 5);
  expect(await counts).toMatchObject({ total: 5, isComplete: false });
  expect(counted.observed.records).toHaveLength(5);
});

it('createCachedRead caches a successful read, and concurrent callers share one read', async () => {
  let reads = 0;
  const shared = createCachedRead(async () => {
    reads++;
    if (reads === 1) throw new Error('connection lost');
    return reads;
  }, 60_000);
  await expect(Promise.all([shared(), shared()])).rejects.toThrow('connection lost');
  expect(await Promise.all([shared(), shared()])).toEqual([2, 2]);
  expect([await shared(), reads]).toEqual([2, 2]);
});
