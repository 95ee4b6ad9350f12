import {
  type ConsentRecord,
  consentCodec,
  frameRecord,
  type IdentityDecisionRecord,
  identityDecisionCodec,
  type MessageRecord,
  messageRecordCodec,
  type RejectionRecord,
  rejectionCodec,
  TOPICS,
} from '@playline/contracts';
import type { FenceSet } from '@playline/erasure';
import { StoreFault } from '@playline/events';
import { createMemoryEventStore } from '@playline/events/memory';
import { createMetrics } from '@playline/runtime';
import { RetryableFault, type StreamRecord } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { messageRecordOf } from '@playline/testkit';
import { describe, expect, it } from 'vitest';
import { createPipeline } from './pipeline.ts';

const MESSAGES_ID = 1;
const DECISIONS_ID = 2;
const CONSENTS_ID = 3;
const REJECTIONS_ID = 4;
const OWNER = Buffer.alloc(16, 7);
const MESSAGES = `test.${TOPICS.messages.name}`;
const DECISIONS = `test.${TOPICS.identityDecisions.name}`;
const CONSENTS = `test.${TOPICS.consents.name}`;
const REJECTIONS = `test.${TOPICS.rejections.name}`;
/** What the registry holds. */
const SCHEMAS = [
  { subject: `${MESSAGES}-value`, id: MESSAGES_ID, schema: messageRecordCodec.schema },
  { subject: `${DECISIONS}-value`, id: DECISIONS_ID, schema: identityDecisionCodec.schema },
  { subject: `${CONSENTS}-value`, id: CONSENTS_ID, schema: consentCodec.schema },
  { subject: `${REJECTIONS}-value`, id: REJECTIONS_ID, schema: rejectionCodec.schema },
];
const { signal } = new AbortController();

const messageValue = (parts: Partial<MessageRecord> = {}) => {
  const record = messageRecordOf('', {
    environmentId: 'demo',
    identityKey: OWNER,
    eventTime: 1_000,
    receivedAt: 2_000,
    ...parts,
  });
  return frameRecord(MESSAGES_ID, messageRecordCodec.encode(record));
};
const decision: IdentityDecisionRecord = {
  environmentId: 'demo',
  generation: 0,
  partition: 0,
  offset: 5,
  step: 0,
  messageId: Buffer.alloc(16),
  link: 'alias',
  aKey: OWNER,
  aKind: 'steam',
  bKey: Buffer.alloc(16, 9),
  bKind: 'epic',
  outcome: 'linked',
  reason: '',
  root: OWNER,
  moved: [{ key: OWNER, kind: 'steam', linkedAt: 2_000 }],
  eventTime: 1_000,
  receivedAt: 2_000,
  traceId: '',
  unlink: null,
};
const decisionValue = (over: Partial<IdentityDecisionRecord> = {}) =>
  frameRecord(DECISIONS_ID, identityDecisionCodec.encode({ ...decision, ...over }));
const consent: ConsentRecord = {
  environmentId: 'demo',
  identityKey: OWNER,
  status: 'full',
  source: 'banner',
  receivedAt: 2_000,
  traceId: '',
};
const consentValue = (over: Partial<ConsentRecord> = {}) =>
  frameRecord(CONSENTS_ID, consentCodec.encode({ ...consent, ...over }));
const rejection: RejectionRecord = {
  environmentId: 'demo',
  code: 'INVALID_ENUM',
  field: 'surface',
  surface: '',
  library: 'web',
  libraryVersion: '1',
  receivedAt: 2_000,
  traceId: '',
};
const rejectionValue = () => frameRecord(REJECTIONS_ID, rejectionCodec.encode(rejection));

const recordOf = (topic: string, value: Buffer | null, offset = 0): StreamRecord => ({
  topic,
  partition: 0,
  offset,
  timestampMs: 0,
  key: null,
  value,
  headers: {},
});

const NO_FENCES: FenceSet = { loaded: true, mayHold: () => false, isFenced: () => false };

async function createTestPipeline(fences = NO_FENCES) {
  const store = createMemoryEventStore();
  const schemas = {
    idOf: async (subject: string) => SCHEMAS.find((entry) => entry.subject === subject)!.id,
    schemaOf: async (id: number) => SCHEMAS.find((entry) => entry.id === id)!.schema,
  };
  const deadLetters = createMemoryLog().openProducer();
  const options = { store, schemas, fences, deadLetters, metrics: createMetrics('test') };
  const pipeline = createPipeline({ ...options, topicPrefix: 'test.', blockBytesMax: 1_000 });
  await pipeline.prefetch();
  return { store, pipeline };
}

describe('the pipeline of the event writer', () => {
  it('names a block by topic, partition, offsets, time, table and version of the transform', async () => {
    const { store, pipeline } = await createTestPipeline();
    const block = pipeline.sink.openBlock(MESSAGES, 0);
    expect(block.add(recordOf(MESSAGES, messageValue(), 10))).toEqual({ kind: 'ok' });
    await block.write(
      { topic: MESSAGES, partition: 3, start: 10, end: 20, transformVersion: 4, firstTimestampMs: 7 },
      signal,
    );
    expect(store.blocks.map(({ table, token }) => [table, token])).toEqual([
      ['events', `${MESSAGES}|3|10|19|7|events|4`],
    ]);
  });

  it('writes a decision into two tables, each under its own token', async () => {
    const { store, pipeline } = await createTestPipeline();
    const block = pipeline.sink.openBlock(DECISIONS, 0);
    expect(block.add(recordOf(DECISIONS, decisionValue()))).toEqual({ kind: 'ok' });
    expect(block.rows).toBe(2);
    await block.write({ topic: DECISIONS, partition: 0, start: 0, end: 1, transformVersion: 1 }, signal);
    expect(store.blocks.map(({ token }) => token)).toEqual([
      `${DECISIONS}|0|0|0|0|identity_links|1`,
      `${DECISIONS}|0|0|0|0|identity_overrides|1`,
    ]);
  });

  it('reads four topics', async () => {
    const { pipeline } = await createTestPipeline();
    expect(pipeline.topics).toEqual([MESSAGES, DECISIONS, CONSENTS, REJECTIONS]);
  });

  it.each([
    [CONSENTS, consentValue(), 'consent_log'],
    [REJECTIONS, rejectionValue(), 'message_rejections'],
  ])('writes a record of %s into its table under its token', async (topic, value, table) => {
    const { store, pipeline } = await createTestPipeline();
    const block = pipeline.sink.openBlock(topic, 0);
    expect(block.add(recordOf(topic, value))).toEqual({ kind: 'ok' });
    expect(block.rows).toBe(1);
    await block.write({ topic, partition: 0, start: 0, end: 1, transformVersion: 1 }, signal);
    expect(store.blocks.map(({ token }) => token)).toEqual([`${topic}|0|0|0|0|${table}|1`]);
  });

  it('writes rejections also while the fences are not loaded, because no fence applies to them', async () => {
    const { store, pipeline } = await createTestPipeline({ loaded: false, mayHold: () => true, isFenced: () => true });
    const block = pipeline.sink.openBlock(REJECTIONS, 0);
    expect(block.add(recordOf(REJECTIONS, rejectionValue()))).toEqual({ kind: 'ok' });
    await block.write({ topic: REJECTIONS, partition: 0, start: 0, end: 1, transformVersion: 1 }, signal);
    expect(store.blocks).toHaveLength(1);
  });

  it('writes the same bytes again after a temporary fault, and stops at a permanent one', async () => {
    const { store, pipeline } = await createTestPipeline();
    const block = pipeline.sink.openBlock(MESSAGES, 0);
    block.add(recordOf(MESSAGES, messageValue()));
    const name = { topic: MESSAGES, partition: 0, start: 0, end: 1, transformVersion: 1 };
    store.failNext(new StoreFault('busy', { kind: 'passing', code: 'TOO_MANY_PARTS' }));
    await expect(block.write(name, signal)).rejects.toThrow(RetryableFault);
    store.failNext(new StoreFault('no such table', { kind: 'final', code: 'UNKNOWN_TABLE' }));
    await expect(block.write(name, signal)).rejects.not.toThrow(RetryableFault);
    await block.write(name, signal);
    await block.write(name, signal);
    expect(store.blocks).toHaveLength(1);
  });

  it('stores the rows of a recreated topic besides those of the old one at the same offsets', async () => {
    const { store, pipeline } = await createTestPipeline();
    for (const firstTimestampMs of [1_000, 2_000, 2_000]) {
      const block = pipeline.sink.openBlock(MESSAGES, 0);
      block.add(recordOf(MESSAGES, messageValue()));
      await block.write(
        { topic: MESSAGES, partition: 0, start: 0, end: 1, transformVersion: 1, firstTimestampMs },
        signal,
      );
      block.release();
    }
    expect(store.blocks.map(({ token }) => token)).toEqual([
      `${MESSAGES}|0|0|0|1000|events|1`,
      `${MESSAGES}|0|0|0|2000|events|1`,
    ]);
  });

  it('makes a dead letter of an invalid record, and leaves the block as it was', async () => {
    const { pipeline } = await createTestPipeline();
    const value = messageValue();
    const block = pipeline.sink.openBlock(MESSAGES, 0);
    block.add(recordOf(MESSAGES, value));
    const before = [block.rows, block.bytes];
    for (const unframed of [null, Buffer.alloc(0), Buffer.from('{"type":"track"}')])
      expect(block.add(recordOf(MESSAGES, unframed))).toMatchObject({ kind: 'deadLetter' });
    expect(() => block.add(recordOf(MESSAGES, value.subarray(0, 60)))).toThrow(RangeError);
    expect([block.rows, block.bytes]).toEqual(before);

    const decisions = pipeline.sink.openBlock(DECISIONS, 0);
    decisions.add(recordOf(DECISIONS, decisionValue()));
    const standing = [decisions.rows, decisions.bytes];
    expect(() => decisions.add(recordOf(DECISIONS, decisionValue({ step: 256 })))).toThrow(RangeError);
    expect(() => decisions.add(recordOf(DECISIONS, decisionValue({ partition: 65_536 })))).toThrow(RangeError);
    expect(() => decisions.add(recordOf(DECISIONS, decisionValue().subarray(0, 40)))).toThrow(Error);
    expect([decisions.rows, decisions.bytes]).toEqual(standing);

    const consents = pipeline.sink.openBlock(CONSENTS, 0);
    expect(() => consents.add(recordOf(CONSENTS, consentValue({ receivedAt: -1 })))).toThrow(RangeError);
    expect(() => consents.add(recordOf(CONSENTS, consentValue().subarray(0, 20)))).toThrow(Error);
    expect([consents.rows, consents.bytes]).toEqual([0, 0]);
  });

  it('drops records about a fenced identity in messages, decisions and consents', async () => {
    const asked: unknown[] = [];
    const fences: FenceSet = {
      loaded: true,
      mayHold: (source, start) => source.subarray(start, start + 16).equals(OWNER),
      isFenced: ({ key, ...question }) => key.equals(OWNER) && asked.push(question) > 0,
    };
    const { pipeline } = await createTestPipeline(fences);
    for (const [topic, value] of [
      [MESSAGES, messageValue()],
      [DECISIONS, decisionValue()],
      [CONSENTS, consentValue()],
    ] as const) {
      const block = pipeline.sink.openBlock(topic, 0);
      expect(block.add(recordOf(topic, value))).toEqual({ kind: 'drop', reason: 'fenced' });
      expect([block.rows, block.bytes]).toEqual([0, 0]);
    }
    const question = { environmentId: 'demo', eventTimeMs: 1_000, receivedAtMs: 2_000 };
    // The time of a moved identity is that of its first link; a consent has only the time of its receipt.
    const once = { ...question, eventTimeMs: 2_000 };
    expect(asked).toEqual([question, question, once, once]);
  });

  it('stores an event of another user on an erased person’s device without the id of the device', async () => {
    const device = Buffer.alloc(16, 9);
    const fences: FenceSet = { ...NO_FENCES, mayHold: () => true, isFenced: ({ key }) => key.equals(device) };
    const { store, pipeline } = await createTestPipeline(fences);
    const block = pipeline.sink.openBlock(MESSAGES, 0);
    const value = messageValue({ anonymousKey: device, anonymousId: 'device-1', userId: 'user-1', userKey: OWNER });
    expect(block.add(recordOf(MESSAGES, value))).toEqual({ kind: 'ok' });
    await block.write({ topic: MESSAGES, partition: 0, start: 0, end: 1, transformVersion: 1 }, signal);
    const bytes = store.blocks[0]!.rows;
    expect(bytes.includes('user-1')).toBe(true);
    expect(bytes.includes('device-1')).toBe(false);
    expect(bytes.includes(device)).toBe(false);
  });

  it('stores nothing while the fences are not loaded, and checks records taken meanwhile once they are', async () => {
    const fences = { loaded: false, mayHold: () => true, isFenced: () => true };
    const { store, pipeline } = await createTestPipeline(fences);
    const block = pipeline.sink.openBlock(MESSAGES, 0);
    expect(block.add(recordOf(MESSAGES, messageValue()))).toEqual({ kind: 'ok' });
    const name = { topic: MESSAGES, partition: 0, start: 0, end: 1, transformVersion: 1 };
    await expect(block.write(name, signal)).rejects.toThrow(RetryableFault);
    fences.loaded = true;
    await block.write(name, signal);
    expect(store.blocks).toEqual([]);
  });

  it('gives the next block an empty buffer', async () => {
    const { store, pipeline } = await createTestPipeline();
    for (const start of [0, 1]) {
      const block = pipeline.sink.openBlock(MESSAGES, 0);
      block.add(recordOf(MESSAGES, messageValue(), start));
      await block.write({ topic: MESSAGES, partition: 0, start, end: start + 1, transformVersion: 1 }, signal);
      block.release();
    }
    expect(new Set(store.blocks.map(({ rows }) => rows.length)).size).toBe(1);
  });
});
