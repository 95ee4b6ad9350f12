import { frameRecord, messageRecordCodec, TOPICS } from '@playline/contracts';
import { deadLetterTopicOf, type StreamRecord } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { messageRecordOf } from '@playline/testkit/message-record';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createCountingLog } from './live/test/counting-log.ts';
import { createCachedRead, createDeadLetterCounter, createPipelineStatus } from './pipeline-status.ts';

const MESSAGES = TOPICS.messages.name;
const KEY = Buffer.alloc(16, 7);

function open() {
  const log = createMemoryLog();
  const counted = createCountingLog(log);
  const producer = log.openProducer();
  const add = (topic: string, record: { key?: Buffer | null; value?: Buffer; headers?: Record<string, string> } = {}) =>
    producer.sendForOffset({ topic, partition: 0, key: null, value: Buffer.alloc(1), ...record });
  const schemaOf = async () => messageRecordCodec.schema;
  const parts = { reader: counted.reader, registry: { schemaOf }, topicPrefix: '' };
  return { counted, add, status: createPipelineStatus(parts) };
}

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
  const { byEnvironment, isComplete } = await status.openDeadLetters();
  expect([Object.fromEntries(byEnvironment), isComplete]).toEqual([{ demo: 1, 'demo-2': 2 }, true]);
});

it('a count of dead letters reads a limited number of records and reports that the count is incomplete', async () => {
  const { counted, add } = open();
  for (let index = 0; index < 7; index++) await add(deadLetterTopic);
  const { byEnvironment, isComplete } = await createDeadLetterCounter(
    counted.reader,
    [MESSAGES],
    async () => 'demo',
    5,
  )();
  expect([byEnvironment.get('demo'), isComplete]).toEqual([5, false]);
  expect(counted.observed.records).toHaveLength(5);
});

it('a repeated count reads only new records, and equals the first count of another process', async () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant('dead letter' as const) },
    { weight: 2, arbitrary: fc.nat(9) },
    { weight: 2, arbitrary: fc.constant('count' as const) },
    { weight: 1, arbitrary: fc.constant('fault' as const) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { counted, add } = open();
      let isFaulty = false;
      const environmentOf = async (_: string, { offset }: StreamRecord) => {
        if (isFaulty) throw new Error('no registry');
        return `environment-${offset % 2}`;
      };
      const createCount = () => createDeadLetterCounter(counted.reader, [MESSAGES], environmentOf, 5);
      const count = createCount();
      const readSince = async (read: () => Promise<unknown>) => {
        const before = counted.observed.records.length;
        await read();
        return counted.observed.records.length - before;
      };
      for (const step of steps) {
        if (step === 'dead letter') await add(deadLetterTopic);
        else if (typeof step === 'number') await add(deadLetterTopic, { headers: { 'settled-offset': String(step) } });
        else if (step === 'fault') {
          isFaulty = true;
          await count();
          isFaulty = false;
        } else {
          expect(await count()).toEqual(await createCount()());
          expect(await readSince(count)).toBe(0);
        }
      }
    }),
    { numRuns: runsOf({ quick: 100, all: 2_000 }) },
  );
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
