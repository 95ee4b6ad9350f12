import { codePoint } from '@playline/testkit/code-point';
import { validMessages } from '@playline/testkit/messages';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decisionTextOf, type IdentityDecisionRecord, type MessageRecord, ZERO_KEY } from './audience-records.ts';
import { ACTIVITY_TYPES, IDENTITY_KINDS, VERIFICATION_STATUSES } from './limits.ts';
import { eventContextSchema, type Message, messageSchema, parseMessage } from './message.ts';
import {
  activityCodec,
  frameRecord,
  identityDecisionCodec,
  identityLinkCodec,
  messageRecordCodec,
  schemaIdOf,
  tokenCodec,
} from './records.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 12);
const WINDOW = { fromMs: 0, toMs: NOW_MS * 2 };

const text = fc.string({ unit: codePoint, maxLength: 20 });
const toBuffer = (bytes: Uint8Array) => Buffer.from(bytes);
const key = fc.uint8Array({ minLength: 16, maxLength: 16 }).map(toBuffer);
const kind = fc.constantFrom(...IDENTITY_KINDS);
const time = fc.integer({ min: 0, max: 2 ** 43 });

/** Converts a message to its record. Absent strings are '', an absent `test` is false, free-form objects are JSON. */
function toRecord(message: Message): MessageRecord {
  const { eventTimestamp, eventTime, messageId, context, properties, traits, ...fields } = message;
  const blank = Object.fromEntries(stringFields.map((name) => [name, '']));
  return {
    ...blank,
    ...fields,
    test: fields.test ?? false,
    ...context,
    screenDensity: context?.screenDensity ?? null,
    properties: properties === undefined ? '' : JSON.stringify(properties),
    traits: traits === undefined ? '' : JSON.stringify(traits),
    messageId: Buffer.from(messageId.replaceAll('-', ''), 'hex'),
    eventTime,
    ...Object.fromEntries(keyFields.map((name) => [name, ZERO_KEY])),
    receivedAt: NOW_MS,
    environmentId: 'demo-test',
    traceId: 'ab'.repeat(16),
  } as unknown as MessageRecord;
}

interface AvroField {
  name: string;
  type: unknown;
}
const avroFields: AvroField[] = JSON.parse(messageRecordCodec.schema).fields;
const stringFields = avroFields.filter(({ type }) => type === 'string').map(({ name }) => name);
const keyFields = avroFields.filter(({ name }) => name.endsWith('Key')).map(({ name }) => name);

it('the message record has a field for every field of a message', () => {
  const names = avroFields.map(({ name }) => name);
  const sent = [...Object.keys(messageSchema.shape), ...Object.keys(eventContextSchema.shape)];
  const renamed: Record<string, string> = { eventTimestamp: 'eventTime' };
  for (const name of sent.filter((field) => field !== 'context')) expect(names).toContain(renamed[name] ?? name);
});

it('the only additional fields of the message record are those that the gateway adds', () => {
  const sent = new Set([...Object.keys(messageSchema.shape), ...Object.keys(eventContextSchema.shape), 'eventTime']);
  const added = avroFields.map(({ name }) => name).filter((name) => !sent.has(name));
  expect(added).toEqual([
    'environmentId',
    'receivedAt',
    'identityKey',
    'anonymousKey',
    'userKey',
    'fromKey',
    'toKey',
    'traceId',
  ]);
});

it('messageRecordCodec encodes every valid message and decodes it unchanged', () => {
  fc.assert(
    fc.property(validMessages(NOW_MS), (value) => {
      const parsed = parseMessage(value, WINDOW);
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
      const record = toRecord(parsed.message);
      expect({ ...messageRecordCodec.decode(messageRecordCodec.encode(record)) }).toEqual(record);
    }),
  );
});

const common = { environmentId: text, messageId: key, eventTime: time, receivedAt: time, traceId: text };

it('identityLinkCodec decodes every link fact that it encoded', () => {
  const link = fc.constantFrom('identify' as const, 'alias' as const);
  const unlink = fc.array(fc.record({ key, kind }), { maxLength: 3 });
  const facts = fc.record({ ...common, link, fromKind: kind, fromId: text, toKind: kind, toId: text, unlink });
  fc.assert(
    fc.property(facts, (fact) => {
      const decoded = identityLinkCodec.decode(identityLinkCodec.encode(fact));
      expect({ ...decoded, unlink: decoded.unlink.map((identity) => ({ ...identity })) }).toEqual(fact);
    }),
  );
});

it('identityDecisionCodec decodes every decision that it encoded', () => {
  const position = {
    generation: fc.nat(),
    partition: fc.nat(),
    offset: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    step: fc.nat(),
  };
  const sides = { aKey: key, aKind: kind, bKey: key, bKind: kind, root: key };
  const moved = fc.array(fc.record({ key, kind, linkedAt: fc.nat() }), { maxLength: 3 });
  const unlink = fc.option(fc.record({ stayedRoot: key, stayed: moved }));
  const link = fc.constantFrom('identify' as const, 'alias' as const, 'same_id' as const);
  const outcome = fc.constantFrom('linked' as const, 'unchanged' as const, 'refused' as const, 'ambiguous' as const);
  const decisions = fc.record({ ...common, ...position, ...sides, moved, link, outcome, reason: text, unlink });
  fc.assert(
    fc.property(decisions, (decision) => {
      const decoded = identityDecisionCodec.decode(identityDecisionCodec.encode(decision));
      // The codec's records are instances of generated classes.
      const toPlain = (identities: IdentityDecisionRecord['moved']) => identities.map((identity) => ({ ...identity }));
      const plainUnlink = decoded.unlink && { ...decoded.unlink, stayed: toPlain(decoded.unlink.stayed) };
      expect({ ...decoded, moved: toPlain(decoded.moved), unlink: plainUnlink }).toEqual(decision);
    }),
  );
});

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toBuffer);
const digits = fc.bigInt({ min: 0n, max: 2n ** 64n }).map(String);
const microseconds = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER - 1 });

it('activityCodec decodes every activity that it encoded, with microsecond timestamps', () => {
  const position = { transactionHash: bytes(32), blockNumber: digits, transactionIndex: digits };
  const metadata = fc.option(fc.record({ ...position, logIndex: fc.option(digits) }));
  const type = fc.constantFrom(...ACTIVITY_TYPES);
  const common = { chain: text, id: key, type, contractAddress: bytes(20), indexedAt: microseconds };
  const activities = fc.record({ ...common, blockchainMetadata: metadata, details: text, traceId: text });
  fc.assert(
    fc.property(activities, (activity) => {
      const decoded = activityCodec.decode(activityCodec.encode(activity));
      // The codec's records are instances of generated classes.
      const blockchainMetadata = decoded.blockchainMetadata && { ...decoded.blockchainMetadata };
      expect({ ...decoded, blockchainMetadata }).toEqual(activity);
    }),
  );
});

it('tokenCodec decodes every token that it encoded, including tokens with null fields', () => {
  const optional = { symbol: fc.option(text), imageUrl: fc.option(text), name: fc.option(text) };
  const root = { rootContractAddress: fc.option(bytes(20)), rootChainId: fc.option(text), bridgeUsed: fc.option(text) };
  const verificationStatus = fc.constantFrom(...VERIFICATION_STATUSES);
  const required = { chain: text, contractAddress: bytes(20), decimals: fc.option(fc.nat(255)), traceId: text };
  const tokens = fc.record({ ...required, ...optional, ...root, verificationStatus, isCanonical: fc.boolean() });
  fc.assert(
    fc.property(tokens, (token) => {
      expect({ ...tokenCodec.decode(tokenCodec.encode(token)) }).toEqual(token);
    }),
  );
});

it('decisionTextOf recognises an unlink, which is logged with the symbols of a link', () => {
  const unlink = { stayedRoot: Buffer.alloc(16, 4), stayed: [] };
  const decision = { link: 'alias', outcome: 'linked', unlink } as const;
  expect(decisionTextOf(decision)).toEqual({ link: 'unlink', outcome: 'unlinked' });
  expect(decisionTextOf({ ...decision, outcome: 'refused' })).toEqual({ link: 'unlink', outcome: 'refused' });
  expect(decisionTextOf({ ...decision, unlink: null })).toEqual({ link: 'alias', outcome: 'linked' });
});

it('frameRecord puts the schema id before the body', () => {
  fc.assert(
    fc.property(fc.nat(), key, (schemaId, body) => {
      const framed = frameRecord(schemaId, body);
      expect(schemaIdOf(framed)).toBe(schemaId);
      expect(framed.subarray(5)).toEqual(body);
    }),
  );
});

it.each([[Buffer.alloc(0)], [Buffer.alloc(4)], [Buffer.from([1, 0, 0, 0, 1])]])(
  'schemaIdOf returns null for %j, which is not in the Confluent wire format',
  (bytes) => {
    expect(schemaIdOf(bytes)).toBeNull();
  },
);
