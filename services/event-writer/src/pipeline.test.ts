import {
  type AccessKeyRecord,
  accessKeyCodec,
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
import { type BlockName, RetryableFault } from '@playline/stream';
import { createMemoryLog } from '@playline/stream/memory';
import { messageRecordOf } from '@playline/testkit';
import { expect, it } from 'vitest';
import { createPipeline } from './pipeline.ts';
import { toDecision, toRecord } from './test/records.ts';

const OWNER = Buffer.alloc(16, 7);
const MESSAGES = `test.${TOPICS.messages.name}`;
const DECISIONS = `test.${TOPICS.identityDecisions.name}`;
const CONSENTS = `test.${TOPICS.consents.name}`;
const REJECTIONS = `test.${TOPICS.rejections.name}`;
const KEYS = `test.${TOPICS.accessKeys.name}`;
/** The schemas in the registry, with their index as the schema id. */
const SCHEMAS = [
  { topic: MESSAGES, schema: messageRecordCodec.schema },
  { topic: DECISIONS, schema: identityDecisionCodec.schema },
  { topic: CONSENTS, schema: consentCodec.schema },
  { topic: REJECTIONS, schema: rejectionCodec.schema },
  { topic: KEYS, schema: accessKeyCodec.schema },
];
const NO_FENCES: FenceSet = { loaded: true, mayHold: () => false, isFenced: () => false };
const NOT_LOADED: FenceSet = { loaded: false, mayHold: () => true, isFenced: () => true };
const { signal } = new AbortController();

const messageValue = (parts: Partial<MessageRecord> = {}) => {
  const record = messageRecordOf('', {
    environmentId: 'demo',
    identityKey: OWNER,
    eventTime: 1_000,
    receivedAt: 2_000,
    ...parts,
  });
  return frameRecord(0, messageRecordCodec.encode(record));
};
const decisionValue = (changes: Partial<IdentityDecisionRecord> = {}) =>
  frameRecord(1, identityDecisionCodec.encode(toDecision(changes)));
const consent: ConsentRecord = {
  environmentId: 'demo',
  identityKey: OWNER,
  status: 'full',
  source: 'banner',
  receivedAt: 2_000,
  traceId: '',
};
const consentValue = (changes: Partial<ConsentRecord> = {}) =>
  frameRecord(2, consentCodec.encode({ ...consent, ...changes }));
const rejection: RejectionRecord = {
  environmentId: 'demo',
  code: 'INVALID_ENUM',
  field: 'surface',
  surface: '',
  library: 'web',
  libraryVersion: '1',
  receivedAt: 2_000,
  traceId: '',
  messageIndex: 0,
};
const rejectionValue = () => frameRecord(3, rejectionCodec.encode(rejection));
const accessKey: AccessKeyRecord = {
  id: 'demo/secret',
  revision: 1,
  projectId: 'demo',
  environmentId: 'demo',
  environment: 'production',
  kind: 'secret',
  ended: [],
  action: 'create',
  changedAt: 1_000,
  changedBy: 'ada',
  requestId: 'r',
  live: {
    keyId: 'key-1',
    hash: 'HASH',
    first4: 'sk_a',
    last4: 'wxyz',
    name: '',
    createdAt: 1_000,
    changedBy: 'ada',
    text: null,
    origins: [],
    endsAt: null,
    limitId: '',
  },
};

const toBlockName = (topic: string, changes: Partial<BlockName> = {}): BlockName => {
  return { topic, partition: 0, start: 0, end: 1, transformVersion: 1, ...changes };
};

async function createTestPipeline(fences = NO_FENCES) {
  const store = createMemoryEventStore();
  const schemas = {
    idOf: async (subject: string) => SCHEMAS.findIndex(({ topic }) => subject === `${topic}-value`),
    schemaOf: async (id: number) => SCHEMAS[id]?.schema ?? null,
  };
  const deadLetters = createMemoryLog().openProducer();
  const options = { store, schemas, fences, deadLetters, metrics: createMetrics('test') };
  const pipeline = createPipeline({ ...options, topicPrefix: 'test.', blockBytesMax: 1_000 });
  await pipeline.prefetch();
  const write = async (topic: string, value: Buffer, changes: Partial<BlockName> = {}) => {
    const block = pipeline.sink.openBlock(topic, 0);
    expect(block.add(toRecord(topic, value, changes.start ?? 0))).toEqual({ kind: 'ok' });
    const { rows } = block;
    await block.write(toBlockName(topic, changes), signal);
    block.release();
    return rows;
  };
  return { store, pipeline, write };
}

it('the token of a block contains topic, partition, offsets, time, table and transform version', async () => {
  const { store, write } = await createTestPipeline();
  const name = { partition: 3, start: 10, end: 20, transformVersion: 4, firstTimestampMs: 7 };
  await write(MESSAGES, messageValue(), name);
  expect(store.blocks).toMatchObject([{ table: 'events', token: `${MESSAGES}|3|10|19|7|events|4` }]);
});

it('a decision is written to two tables with separate tokens', async () => {
  const { store, write } = await createTestPipeline();
  expect(await write(DECISIONS, decisionValue())).toBe(2);
  expect(store.blocks.map(({ token }) => token)).toEqual([
    `${DECISIONS}|0|0|0|0|identity_links|1`,
    `${DECISIONS}|0|0|0|0|identity_overrides|1`,
  ]);
});

it('the pipeline reads the audit topics separately from the four player topics', async () => {
  const { pipeline } = await createTestPipeline();
  expect(pipeline.topics).toEqual([MESSAGES, DECISIONS, CONSENTS, REJECTIONS]);
  const access = Object.values(TOPICS).filter(({ name }) => name.startsWith('access.'));
  expect([...pipeline.auditTopics].sort()).toEqual(access.map(({ name }) => `test.${name}`).sort());
});

it.each([
  [CONSENTS, consentValue(), 'consent_log'],
  [REJECTIONS, rejectionValue(), 'message_rejections'],
])('a record of %s is written to its table with its token', async (topic, value, table) => {
  const { store, write } = await createTestPipeline();
  expect(await write(topic, value)).toBe(1);
  expect(store.blocks.map(({ token }) => token)).toEqual([`${topic}|0|0|0|0|${table}|1`]);
});

it('rejections are written even if the fences are not loaded, because no fence applies to rejections', async () => {
  const { store, write } = await createTestPipeline(NOT_LOADED);
  await write(REJECTIONS, rejectionValue());
  expect(store.blocks).toHaveLength(1);
});

it('a block rewrites the same bytes after a temporary fault, and rethrows a permanent fault', async () => {
  const { store, pipeline } = await createTestPipeline();
  const block = pipeline.sink.openBlock(MESSAGES, 0);
  block.add(toRecord(MESSAGES, messageValue()));
  const name = toBlockName(MESSAGES);
  store.failNext(new StoreFault('busy', { kind: 'transient', code: 'TOO_MANY_PARTS' }));
  await expect(block.write(name, signal)).rejects.toThrow(RetryableFault);
  store.failNext(new StoreFault('no such table', { kind: 'permanent', code: 'UNKNOWN_TABLE' }));
  await expect(block.write(name, signal)).rejects.not.toThrow(RetryableFault);
  await block.write(name, signal);
  await block.write(name, signal);
  expect(store.blocks).toHaveLength(1);
});

it('rows of a recreated topic are stored in addition to rows of the old topic at the same offsets', async () => {
  const { store, write } = await createTestPipeline();
  for (const firstTimestampMs of [1_000, 2_000, 2_000]) await write(MESSAGES, messageValue(), { firstTimestampMs });
  expect(store.blocks.map(({ token }) => token)).toEqual([
    `${MESSAGES}|0|0|0|1000|events|1`,
    `${MESSAGES}|0|0|0|2000|events|1`,
  ]);
});

it('an invalid record becomes a dead letter and does not change the block', async () => {
  const { pipeline } = await createTestPipeline();
  const value = messageValue();
  const block = pipeline.sink.openBlock(MESSAGES, 0);
  block.add(toRecord(MESSAGES, value));
  const before = [block.rows, block.bytes];
  for (const unframed of [null, Buffer.alloc(0), Buffer.from('{"type":"track"}')])
    expect(block.add(toRecord(MESSAGES, unframed))).toMatchObject({ kind: 'deadLetter' });
  expect(() => block.add(toRecord(MESSAGES, value.subarray(0, 60)))).toThrow(RangeError);
  expect([block.rows, block.bytes]).toEqual(before);

  const decisions = pipeline.sink.openBlock(DECISIONS, 0);
  decisions.add(toRecord(DECISIONS, decisionValue()));
  const decisionsBefore = [decisions.rows, decisions.bytes];
  expect(() => decisions.add(toRecord(DECISIONS, decisionValue({ step: 256 })))).toThrow(RangeError);
  expect(() => decisions.add(toRecord(DECISIONS, decisionValue({ partition: 65_536 })))).toThrow(RangeError);
  expect(() => decisions.add(toRecord(DECISIONS, decisionValue().subarray(0, 40)))).toThrow(Error);
  expect([decisions.rows, decisions.bytes]).toEqual(decisionsBefore);

  const consents = pipeline.sink.openBlock(CONSENTS, 0);
  expect(() => consents.add(toRecord(CONSENTS, consentValue({ receivedAt: -1 })))).toThrow(RangeError);
  expect(() => consents.add(toRecord(CONSENTS, consentValue().subarray(0, 20)))).toThrow(Error);
  expect([consents.rows, consents.bytes]).toEqual([0, 0]);
});

it('messages, decisions and consents of a fenced identity are dropped', async () => {
  const queries: unknown[] = [];
  const fences: FenceSet = {
    loaded: true,
    mayHold: (source, start) => source.subarray(start, start + 16).equals(OWNER),
    isFenced: ({ key, ...query }) => key.equals(OWNER) && queries.push(query) > 0,
  };
  const { pipeline } = await createTestPipeline(fences);
  for (const [topic, value] of [
    [MESSAGES, messageValue()],
    [DECISIONS, decisionValue()],
    [CONSENTS, consentValue()],
  ] as const) {
    const block = pipeline.sink.openBlock(topic, 0);
    expect(block.add(toRecord(topic, value))).toEqual({ kind: 'drop', reason: 'fenced' });
    expect([block.rows, block.bytes]).toEqual([0, 0]);
  }
  const query = { environmentId: 'demo', eventTimeMs: 1_000, receivedAtMs: 2_000 };
  // A moved identity has the time of its first link. A consent has only a receipt time.
  const receipt = { ...query, eventTimeMs: 2_000 };
  expect(queries).toEqual([query, query, receipt, receipt]);
});

it("an event of another user on an erased person's device is stored without the device's anonymous id", async () => {
  const device = Buffer.alloc(16, 9);
  const fences: FenceSet = { ...NO_FENCES, mayHold: () => true, isFenced: ({ key }) => key.equals(device) };
  const { store, write } = await createTestPipeline(fences);
  const fields = { anonymousKey: device, anonymousId: 'device-1', userId: 'user-1', userKey: OWNER };
  await write(MESSAGES, messageValue(fields));
  const bytes = store.blocks[0]!.rows;
  expect(bytes.includes('user-1')).toBe(true);
  expect(bytes.includes('device-1')).toBe(false);
  expect(bytes.includes(device)).toBe(false);
});

it('nothing is stored until the fences are loaded, and earlier records are then checked', async () => {
  const fences = { ...NOT_LOADED, loaded: false };
  const { store, pipeline } = await createTestPipeline(fences);
  const block = pipeline.sink.openBlock(MESSAGES, 0);
  expect(block.add(toRecord(MESSAGES, messageValue()))).toEqual({ kind: 'ok' });
  const name = toBlockName(MESSAGES);
  await expect(block.write(name, signal)).rejects.toThrow(RetryableFault);
  fences.loaded = true;
  await block.write(name, signal);
  expect(store.blocks).toEqual([]);
});

it('a new block has an empty buffer', async () => {
  const { store, write } = await createTestPipeline();
  for (const start of [0, 1]) await write(MESSAGES, messageValue(), { start, end: start + 1 });
  expect(new Set(store.blocks.map(({ rows }) => rows.length)).size).toBe(1);
});

it('the audit entry of a key record is derived even if the fences are not loaded', async () => {
  const { store, write } = await createTestPipeline(NOT_LOADED);
  await write(KEYS, frameRecord(4, accessKeyCodec.encode(accessKey)));
  expect(store.blocks.map(({ token }) => token)).toEqual([`${KEYS}|0|0|0|0|audit_log|1`]);
  const bytes = store.blocks[0]!.rows;
  expect([bytes.includes('key.create'), bytes.includes('HASH')]).toEqual([true, false]);
});
