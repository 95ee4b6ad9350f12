import { frameRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { deadLetterTopicOf } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { messageRecordOf } from '@playline/testkit/message-record';
import { expect, it } from 'vitest';
import { createCountedLog } from './live/test/counted-log.ts';
import { countOpenDeadLetters, createPipelineStatus, createShared, readWriterDelay } from './pipeline-status.ts';

const MESSAGES = TOPICS.messages.name;
const KEY = Buffer.alloc(16, 7);

function open() {
  const log = createMemoryLog();
  const counted = createCountedLog(log);
  const producer = log.openProducer();
  const put = (topic: string, record: { key?: Buffer | null; value?: Buffer; headers?: Record<string, string> } = {}) =>
    producer.sendForOffset({ topic, partition: 0, key: null, value: Buffer.alloc(1), ...record });
  const schemaOf = async () => messageRecordCodec.schema;
  const parts = { reader: counted.reader, registry: { schemaOf }, topicPrefix: '', writerGroup: 'event-writer' };
  return { counted, put, status: createPipelineStatus(parts) };
}

it('the writer delay is the age of the oldest message that is not stored, null when all are', async () => {
  const { counted, put } = open();
  const read = () => readWriterDelay(counted.reader, MESSAGES, 'event-writer');
  expect(await read()).toEqual({ waiting: 0, oldestMs: null });
  const beforeMs = Date.now();
  for (let index = 0; index < 3; index++) await put(MESSAGES);
  const behind = await read();
  expect(behind.waiting).toBe(3);
  expect(behind.oldestMs).toBeGreaterThanOrEqual(beforeMs - 1);
  counted.committed.set(0, 2);
  expect((await read()).waiting).toBe(1);
  counted.committed.set(0, 3);
  expect(await read()).toEqual({ waiting: 0, oldestMs: null });
});

const dead = deadLetterTopicOf(MESSAGES);

it('open dead letters are counted by environment, from their key or their record, without settled ones', async () => {
  const { put, status } = open();
  await put(dead, { key: Buffer.concat([Buffer.from('demo'), KEY]) });
  await put(dead, { key: Buffer.concat([Buffer.from('demo-2'), KEY]) });
  const record = messageRecordOf('level_started', { environmentId: 'demo-2' });
  const headers = { 'original-topic': MESSAGES, 'original-partition': '0', 'original-offset': '9' };
  await put(dead, { value: frameRecord(1, messageRecordCodec.encode(record)), headers });
  await put(deadLetterTopicOf(TOPICS.identityLinks.name), { key: Buffer.from('demo') });
  await put(deadLetterTopicOf(TOPICS.accounts.name), { key: Buffer.from('demo') });
  await put(dead, { headers: { 'settled-offset': '0' } });
  const { total, byEnvironment, isWhole } = await status.openDeadLetters();
  expect([total, Object.fromEntries(byEnvironment), isWhole]).toEqual([4, { demo: 1, 'demo-2': 2 }, true]);
});

it('dead letters are read up to a limit, beyond which the count is marked incomplete', async () => {
  const { counted, put } = open();
  for (let index = 0; index < 7; index++) await put(dead);
  const counts = countOpenDeadLetters(counted.reader, [MESSAGES], async () => null, 5);
  expect(await counts).toMatchObject({ total: 5, isWhole: false });
  expect(counted.requested.records).toHaveLength(5);
});

it('createShared runs one read for parallel and soon following calls, and does not keep a failed one', async () => {
  let reads = 0;
  const shared = createShared(async () => {
    reads++;
    if (reads === 1) throw new Error('connection lost');
    return reads;
  }, 60_000);
  await expect(Promise.all([shared(), shared()])).rejects.toThrow('connection lost');
  expect(await Promise.all([shared(), shared()])).toEqual([2, 2]);
  expect([await shared(), reads]).toEqual([2, 2]);
});
