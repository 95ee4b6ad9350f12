import { type IdentityKind, type MessageRecord, messageRecordCodec, schemaIdOf } from '@playline/contracts';
import { isPlaceholder } from '@playline/people';
import { validMessages } from '@playline/testkit/messages';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createScanner, validateScanned } from '../scan/batch.ts';
import { toReadableJson } from '../scan/test/document.ts';
import type { EncodedRecord, RecordEnvelope } from './encode-batch.ts';
import { createBatchEncoder } from './encode-batch.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
/** Includes every valid timestamp. */
const WINDOW = { fromMs: -1e15, toMs: 1e15 };
const ENVELOPE: RecordEnvelope = {
  schemaId: 300,
  environmentId: 'größe-test',
  receivedAt: NOW_MS,
  traceId: '0123456789abcdef0123456789abcdef',
};
const PAGE = {
  type: 'page',
  messageId: '0192F1C0-7b3a-7c4d-8e5f-000000000001',
  eventTimestamp: '2026-11-21T11:59:00Z',
};
const ZERO = Buffer.alloc(16);

/** Returns a legible key: kind and id, truncated to 16 bytes. */
const keyOf = (kind: IdentityKind, id: string) => Buffer.alloc(16).fill(Buffer.from(`${kind}:${id};`));

const scanner = createScanner();
const encodeBatch = createBatchEncoder();

/** @param messages values, or JSON strings that are written into the body unchanged */
function encodeAll(messages: readonly unknown[]): EncodedRecord[] {
  const texts = messages.map((message) => (typeof message === 'string' ? message : JSON.stringify(message)));
  const count = scanner.scan(Buffer.from(`{"messages":[${texts.join()}]}`), WINDOW);
  const { rejected } = validateScanned(scanner.state);
  if (count !== messages.length || rejected.length > 0) throw new Error(JSON.stringify({ count, rejected, texts }));
  return encodeBatch(scanner.state.batch, ENVELOPE, (kind, id) => keyOf(kind, Buffer.from(id).toString()));
}

function encode(message: unknown) {
  const record = encodeAll([message])[0]!;
  return { ...record, decoded: messageRecordCodec.decode(record.value.subarray(5)) };
}

const isRealId = (id: unknown): id is string => typeof id === 'string' && !isPlaceholder(id);
const storedId = (id: unknown) => (typeof id === 'string' && id.trim() !== '' ? id : '');
const keyFor = (id: unknown, kind: unknown): Buffer =>
  isRealId(id) ? keyOf((kind ?? 'untyped') as IdentityKind, id.trim()) : ZERO;

const isFromAnonymous = ({ fromType, fromId, anonymousId }: Record<string, unknown>) =>
  fromType == null && isRealId(fromId) && isRealId(anonymousId) && fromId.trim() === anonymousId.trim();

/** Computes the expected record from the JSON of the message. */
function toExpectedRecord(message: Record<string, unknown>): Record<string, unknown> {
  const sent = JSON.parse(JSON.stringify(message));
  const context = (sent.context ?? {}) as Record<string, unknown>;
  const texts = ['library', 'libraryVersion', 'userAgent', 'locale', 'timezone', 'screen'];
  const pageTexts = ['pageUrl', 'pagePath', 'pageReferrer', 'pageTitle', 'browserLanguage'];
  const ids = ['anonymousId', 'userId', 'fromId', 'toId', 'deviceId', 'sessionId'];
  const plain = ['type', 'eventName', 'identityType', 'fromType', 'toType', 'surface', 'consentLevel'];
  const anonymousKey = keyFor(sent.anonymousId, 'anonymous');
  const userKey = keyFor(sent.userId, sent.identityType);
  return {
    environmentId: ENVELOPE.environmentId,
    receivedAt: ENVELOPE.receivedAt,
    traceId: ENVELOPE.traceId,
    eventTime: Math.floor(Date.parse(String(sent.eventTimestamp))),
    messageId: Buffer.from(String(sent.messageId).replaceAll('-', ''), 'hex'),
    identityKey: isRealId(sent.userId) ? userKey : anonymousKey,
    anonymousKey,
    userKey,
    fromKey: keyFor(sent.fromId, isFromAnonymous(sent) ? 'anonymous' : sent.fromType),
    toKey: keyFor(sent.toId, sent.toType),
    ...Object.fromEntries(plain.map((name) => [name, sent[name] ?? ''])),
    ...Object.fromEntries(ids.map((name) => [name, storedId(sent[name])])),
    ...Object.fromEntries([...texts, ...pageTexts].map((name) => [name, context[name] ?? ''])),
    screenDensity: context.screenDensity ?? null,
    test: sent.test ?? false,
    properties: sent.properties == null ? '' : toReadableJson(JSON.stringify(sent.properties)),
    traits: sent.traits == null ? '' : toReadableJson(JSON.stringify(sent.traits)),
  };
}

it('an encoded message is identical to the output of the schema’s codec, and its record key identifies the owner or the message', () => {
  fc.assert(
    fc.property(validMessages(NOW_MS), (sent) => {
      const { key, value } = encodeAll([sent])[0]!;
      const expected = toExpectedRecord(sent) as unknown as MessageRecord;
      expect(schemaIdOf(value)).toBe(ENVELOPE.schemaId);
      expect(value.subarray(5).equals(messageRecordCodec.encode(expected))).toBe(true);
      const owner = expected.identityKey;
      const environment = Buffer.from(ENVELOPE.environmentId);
      const id = Buffer.from(String(sent.messageId).toLowerCase());
      expect(key).toEqual(owner.equals(ZERO) ? id : Buffer.concat([environment, owner]));
    }),
    { numRuns: 200 },
  );
});

it('an encoded message does not depend on the other messages in its batch', () => {
  const batches = fc.uniqueArray(validMessages(NOW_MS), {
    minLength: 1,
    maxLength: 20,
    selector: ({ messageId }) => String(messageId).toLowerCase(),
  });
  fc.assert(
    fc.property(batches, (batch) => {
      const records = encodeAll(batch);
      for (const [index, sent] of batch.entries()) expect(records[index]!.value).toEqual(encode(sent).value);
    }),
    { numRuns: 50 },
  );
});

it('an encoded message contains properties and traits exactly as sent', () => {
  const texts = '"properties":{ "a" : 1.0 },"traits":{\n}}';
  const { decoded } = encode(JSON.stringify({ ...PAGE }).replace(/\}$/, `,${texts}`));
  expect(decoded).toMatchObject({ properties: '{ "a" : 1.0 }', traits: '{\n}' });
});

it('an encoded message can have an event time before 1970 or far in the future', () => {
  for (const eventTime of [-1, -62_135_596_800_000, 0, 2 ** 31, 2 ** 32, 253_402_300_799_999]) {
    const eventTimestamp = new Date(eventTime).toISOString();
    expect(encode({ ...PAGE, eventTimestamp }).decoded.eventTime).toBe(eventTime);
  }
});

it('in an alias without fromType, fromId is anonymous if it equals the message’s anonymousId, and otherwise untyped', () => {
  const alias = { ...PAGE, type: 'alias', anonymousId: 'v', fromId: ' v', toId: 'u' };
  expect(encode(alias).decoded).toMatchObject({ fromKey: keyOf('anonymous', 'v') });
  expect(encode({ ...alias, anonymousId: 'w' }).decoded).toMatchObject({ fromKey: keyOf('untyped', 'v') });
  expect(encode({ ...alias, fromType: 'steam' }).decoded).toMatchObject({ fromKey: keyOf('steam', 'v') });
});
