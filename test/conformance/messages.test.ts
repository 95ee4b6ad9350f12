// Contract, from "Message" to "Rules of a batch", including the stored records. The tests in packages/contracts cover
// all cases of each rule.
import { randomUUID } from 'node:crypto';
import { ZERO_KEY } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Client,
  errorsOf,
  expectAccepted,
  expectEnvelope,
  expectRejected,
  message,
  type SentMessage,
  track,
  withContext,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { linksInLog, messagesInLog } from './log.ts';

const BATCH_BYTES = 1 << 20;
const DAY_MS = 86_400_000;
/** Longer than a request, so that a timestamp stays on the same side of the bound. */
const MARGIN_MS = 30_000;

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const createTracks = (count: number) => Array.from({ length: count }, () => track());
const trackAt = (offsetMs: number) => track({ eventTimestamp: new Date(Date.now() + offsetMs).toISOString() });
const createMessageOfSize = (bytes: number) => {
  const empty = track({ properties: { text: '' } });
  return { ...empty, properties: { text: 'x'.repeat(bytes - JSON.stringify(empty).length) } };
};

const ACCEPTED: [string, () => SentMessage[]][] = [
  [
    'messages with only the fields that their type requires',
    () => ['track', 'page', 'screen', 'identify', 'alias'].map((type) => message(type)),
  ],
  [
    'a UUID of any version and case as messageId',
    () => [randomUUID().toUpperCase(), '00000000-0000-0000-0000-000000000000'].map((messageId) => track({ messageId })),
  ],
  [
    'every value of an enumeration',
    () => [
      ...['passport', 'steam', 'epic', 'google', 'apple', 'discord', 'email', 'custom', null].map((type) =>
        track({ identityType: type, fromType: type, toType: type }),
      ),
      ...['web', 'pixel', 'unity', 'unreal', null].map((surface) => track({ surface })),
      ...['not_set', 'none', 'anonymous', 'full', null].map((consentLevel) => track({ consentLevel })),
    ],
  ],
  [
    'strings of the maximum length in code points',
    () => [
      track({ eventName: '😀'.repeat(256) }),
      withContext({ userAgent: 'é'.repeat(512), pageUrl: 'é'.repeat(2048) }),
    ],
  ],
  [
    'null, blank and unknown fields',
    () => [
      track({ anonymousId: ' ', deviceId: null, properties: null, context: null, test: null }),
      withContext({ locale: '', screenDensity: null, plugin: { name: 'x' } }),
      track({ unknown: { deep: [1, 2, 3] } }),
    ],
  ],
  ['timestamps just inside the time window', () => [trackAt(-30 * DAY_MS + MARGIN_MS), trackAt(DAY_MS - MARGIN_MS)]],
  ['a message of exactly 32 KiB', () => [createMessageOfSize(32 * 1024)]],
  ['a batch of 100 messages', () => createTracks(100)],
];

it.each(ACCEPTED)('the gateway accepts %s', async (_, messages) => {
  expectAccepted(await client.send(...messages()), messages().length);
});

const selfAlias = { fromId: 'player-1', toId: ' player-1 ', fromType: 'steam', toType: 'epic' };
const REJECTED: [string, () => unknown][] = [
  ['MISSING_REQUIRED_FIELD type', () => track({ type: null })],
  ['UNSUPPORTED_TYPE type', () => track({ type: 'group' })],
  ['INVALID_FORMAT type', () => track({ type: 7 })],
  ['MISSING_REQUIRED_FIELD messageId', () => track({ messageId: ' ' })],
  ['INVALID_FORMAT messageId', () => track({ messageId: `{${randomUUID()}}` })],
  ['MISSING_REQUIRED_FIELD eventName', () => track({ eventName: ' \t\n' })],
  ['MISSING_REQUIRED_FIELD userId', () => message('identify', { userId: undefined })],
  ['MISSING_REQUIRED_FIELD toId', () => message('alias', { toId: '' })],
  ['INVALID_VALUE toId', () => message('alias', selfAlias)],
  ['INVALID_VALUE deviceId', () => track({ deviceId: 'x'.repeat(257) })],
  ['INVALID_FORMAT sessionId', () => track({ sessionId: 1 })],
  ['INVALID_ENUM surface', () => track({ surface: 'Web' })],
  ['INVALID_FORMAT properties', () => track({ properties: [] })],
  ['INVALID_FORMAT test', () => track({ test: 'true' })],
  ['MISSING_REQUIRED_FIELD context.library', () => withContext({ library: null })],
  ['INVALID_VALUE context.pagePath', () => withContext({ pagePath: 'x'.repeat(2049) })],
  ['INVALID_FORMAT context.screenDensity', () => withContext({ screenDensity: '2' })],
  ['MISSING_REQUIRED_FIELD eventTimestamp', () => track({ eventTimestamp: null })],
  ['INVALID_FORMAT eventTimestamp', () => track({ eventTimestamp: '2026-02-30T00:00:00Z' })],
  ['INVALID_VALUE eventTimestamp', () => trackAt(-30 * DAY_MS - MARGIN_MS)],
  ['INVALID_VALUE eventTimestamp', () => trackAt(DAY_MS + MARGIN_MS)],
  ['INVALID_VALUE message', () => createMessageOfSize(32 * 1024 + 1)],
  ['INVALID_FORMAT message', () => []],
];

it.each(REJECTED)('the gateway rejects a message with %s', async (error, build) => {
  expectRejected(await client.send(build()), error);
});

it('the gateway accepts a lone surrogate in a name, but not in an id', async () => {
  const post = (field: string) =>
    client.post(JSON.stringify({ messages: [track({ [field]: 'LONE' })] }).replace('LONE', 'a\\ud800b'));
  expectAccepted(await post('eventName'));
  expectRejected(await post('anonymousId'), 'INVALID_FORMAT anonymousId');
});

it('the gateway uses the last of several duplicate keys in an object', async () => {
  const valid = JSON.stringify(track());
  expectAccepted(await client.post(`{"messages":[${valid.replace('{', '{"type":"nothing",')}]}`));
  const response = await client.post(`{"messages":[${valid.replace(/}$/, ',"type":"nothing"}')}]}`);
  expectRejected(response, 'UNSUPPORTED_TYPE type');
});

it.each([
  ['no messages', { messages: [] }],
  ['101 messages', { messages: createTracks(101) }],
  ['a string instead of the array', { messages: 'x' }],
  ['an array instead of the object', [track()]],
])('a body with %s returns 400 VALIDATION_ERROR in an error envelope', async (_, body) => {
  expectEnvelope(await client.post(JSON.stringify(body)), 400, 'VALIDATION_ERROR');
});

it('the gateway accepts the valid messages of a batch and lists every error of an invalid message', async () => {
  const invalid = track({ eventName: null, surface: 'phone', test: 1, context: { library: 'a' } });
  const response = await client.send(...createTracks(50), invalid, ...createTracks(49));
  expect(response.status).toBe(200);
  expect(response.body).toMatchObject({ success: true, accepted: 99, rejected: 1 });
  expect(response.body.rejections).toHaveLength(1);
  expect(response.body.rejections[0].messageId).toBe(invalid.messageId);
  expect(errorsOf(response)).toEqual([
    'INVALID_ENUM surface',
    'INVALID_FORMAT test',
    'MISSING_REQUIRED_FIELD context.libraryVersion',
    'MISSING_REQUIRED_FIELD eventName',
  ]);
});

it('a batch of only invalid messages returns 400 with a MessagesResponse', async () => {
  const response = await client.send(track({ test: 'yes' }), track({ surface: 'phone' }));
  expect(response.status).toBe(400);
  expect(response.body).toMatchObject({ success: false, accepted: 0, rejected: 2 });
  expect(Object.keys(response.body).sort()).toEqual(['accepted', 'rejected', 'rejections', 'success']);
});

it('all messages with the same id are rejected in one entry, which contains the id of the first message', async () => {
  const messageId = randomUUID();
  const duplicates = [messageId.toUpperCase(), messageId].map((id) => track({ messageId: id }));
  const response = await client.send(track(), ...duplicates, track({ messageId, surface: 'phone' }));
  expect(response.body).toMatchObject({ success: true, accepted: 1, rejected: 3 });
  expect(response.body.rejections).toHaveLength(1);
  expect(response.body.rejections[0].messageId).toBe(messageId.toUpperCase());
  expect(errorsOf(response)).toEqual(['DUPLICATE_MESSAGE_ID messageId', 'INVALID_ENUM surface']);
});

it('a messageId from an earlier batch is accepted again', async () => {
  const sent = track();
  expectAccepted(await client.send(sent));
  expectAccepted(await client.send(sent, message('page')), 2);
});

it('a rejection contains the messageId unchanged, even with special characters or the maximum length', async () => {
  const space = BATCH_BYTES - JSON.stringify({ messages: [track({ messageId: '' })] }).length;
  for (const messageId of ['é😀\u0000\n"\\</script>\u2028\u00a0', 'x'.repeat(space)]) {
    const response = await client.send(track({ messageId }));
    expect(response.body.rejections[0].messageId).toBe(messageId);
    expect(Number(response.headers.get('content-length'))).toBeLessThan(BATCH_BYTES + 1024);
  }
});

it('a rejection contains a messageId that is not a string as JSON, and is at most twice as large as the batch', async () => {
  const space = BATCH_BYTES - JSON.stringify({ messages: [track({ messageId: [''] })] }).length;
  // Each quotation mark is escaped.
  const messageId = Array.from({ length: Math.floor(space / 3) + 1 }, () => '');
  const response = await client.send(track({ messageId }));
  expectRejected(response, 'INVALID_FORMAT messageId', 'INVALID_VALUE message');
  expect(response.body.rejections[0].messageId).toBe(JSON.stringify(messageId));
  expect(Number(response.headers.get('content-length'))).toBeLessThan(2 * BATCH_BYTES + 1024);
});

async function store(...sent: SentMessage[]) {
  expectAccepted(await client.send(...sent), sent.length);
  const records = await messagesInLog(
    client.topicPrefix,
    sent.map(({ messageId }) => messageId),
  );
  expect(records).toHaveLength(sent.length);
  return records;
}

it('unknown fields of a message and of its context are not stored', async () => {
  const value = `value-${randomUUID()}`;
  const [stored] = await store({ ...withContext({ plugin: value }), extra: { deep: [value] } });
  expect(stored?.record.library).toBe('playline-web');
  expect(stored?.bytes.includes(value)).toBe(false);
});

it('an optional field that is null is stored as absent, including context fields', async () => {
  const fields = ['anonymousId', 'deviceId', 'userId', 'identityType', 'surface', 'consentLevel', 'test', 'traits'];
  const [messageId, eventTimestamp] = [randomUUID(), new Date().toISOString()];
  const nulls = Object.fromEntries(fields.map((field) => [field, null]));
  const context = { library: 'a', libraryVersion: '1' };
  const [absent] = await store(track({ messageId, eventTimestamp, context }));
  expectAccepted(
    await client.send(track({ messageId, eventTimestamp, ...nulls, context: { ...context, locale: null } })),
  );
  const [, withNulls] = await messagesInLog(client.topicPrefix, [messageId]);
  const ignored = { receivedAt: 0, traceId: '' };
  expect({ ...withNulls?.record, ...ignored }).toEqual({ ...absent?.record, ...ignored });
});

it.each(['', ' ', '\t\n', '\u3000'])('the blank optional id %j counts as absent and owns no message', async (blank) => {
  const [stored] = await store(track({ anonymousId: blank, userId: blank, deviceId: blank }));
  expect(stored?.record.identityKey).toEqual(ZERO_KEY);
  expect(stored?.record).toMatchObject({ anonymousId: '', userId: '' });
});

it.each([undefined, null, '', '  '])(
  'the anonymousId %j in an identify message counts as absent and creates no link',
  async (blank) => {
    const sent = message('identify', { anonymousId: blank });
    const linking = message('identify', { anonymousId: `anon-${randomUUID()}` });
    await store(sent, linking);
    const links = await linksInLog(client.topicPrefix, [sent.messageId, linking.messageId]);
    expect(links.map(({ fromId }) => fromId)).toEqual([linking.anonymousId]);
  },
);

it('a message with a blank id and a valid id is owned by the valid id', async () => {
  const [blank] = await store(track({ anonymousId: 'visitor', userId: ' ' }));
  const [absent] = await store(track({ anonymousId: 'visitor' }));
  expect(blank?.record.identityKey).not.toEqual(ZERO_KEY);
  expect(blank?.key).toEqual(absent?.key);
});

it.each(['N/A', ' undefined ', '{"id":null}', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])(
  'the placeholder id %j is stored but owns no message',
  async (placeholder) => {
    const [stored] = await store(track({ anonymousId: placeholder, userId: placeholder }));
    expect(stored?.record.identityKey).toEqual(ZERO_KEY);
    expect(stored?.record).toMatchObject({ anonymousId: placeholder, userId: placeholder });
  },
);

it('in an alias without fromType, fromId is anonymous if it equals the message’s anonymousId, and otherwise untyped', async () => {
  const anonymousId = `anon-${randomUUID()}`;
  const same = message('alias', { anonymousId, fromId: ` ${anonymousId}`, fromType: undefined });
  const other = message('alias', { anonymousId, fromId: `anon-${randomUUID()}`, fromType: undefined });
  const [stored] = await store(same, other);
  expect(stored?.record.fromKey).toEqual(stored?.record.anonymousKey);
  const links = await linksInLog(client.topicPrefix, [same.messageId, other.messageId]);
  expect(links.map(({ fromKind }) => fromKind).sort()).toEqual(['anonymous', 'untyped']);
});

/** Sends a track message with JSON that `JSON.stringify` does not produce, such as escapes and long numbers. */
async function storeRaw(fields: Record<string, unknown>, texts: Record<string, string>) {
  const sent = track(fields);
  let body = JSON.stringify({ messages: [sent] });
  for (const [from, text] of Object.entries(texts)) body = body.replace(from, text);
  expectAccepted(await client.post(body), 1);
  const [stored] = await messagesInLog(client.topicPrefix, [sent.messageId]);
  return stored?.record;
}

it('a lone surrogate in a name or a free-form object is stored as U+FFFD', async () => {
  const fields = { eventName: 'NAME', properties: { a: 'TEXT' }, traits: { a: 'PAIR' } };
  const stored = await storeRaw(fields, { NAME: 'a\\ud83c', TEXT: '\\udf00b', PAIR: '\\ud83c\\udf00' });
  expect(stored).toMatchObject({ eventName: 'a\ufffd', properties: '{"a":"\\ufffdb"}' });
  expect(stored?.traits).toBe('{"a":"\\ud83c\\udf00"}');
});

it('integers beyond 64 bits and numbers too large for a double are stored as strings with the same digits', async () => {
  const fields = { properties: { a: 'BIG' }, traits: { a: 'HUGE' } };
  const stored = await storeRaw(fields, { '"BIG"': '20000000000000000000', '"HUGE"': '[-1e400,18446744073709551615]' });
  expect(stored).toMatchObject({
    properties: '{"a":"20000000000000000000"}',
    traits: '{"a":["-1e400",18446744073709551615]}',
  });
});

it.each(['track', 'page', 'screen', 'identify', 'alias'])(
  'the test flag of a %s message is stored unchanged',
  async (type) => {
    const flags = [true, false, undefined];
    const sent = flags.map((test) => message(type, { test }));
    const stored = await store(...sent);
    const byId = new Map(stored.map(({ record }) => [record.messageId.toString('hex'), record.test]));
    const found = sent.map(({ messageId }) => byId.get(String(messageId).replaceAll('-', '')));
    expect(found).toEqual([true, false, false]);
  },
);

it('the log contains each accepted message of a batch once and no rejected messages', async () => {
  const [valid, invalid] = [track(), track({ surface: 'phone' })];
  expect((await client.send(valid, invalid)).body).toMatchObject({ accepted: 1, rejected: 1 });
  const stored = await messagesInLog(client.topicPrefix, [valid.messageId, invalid.messageId]);
  expect(stored.map(({ record }) => record.messageId.toString('hex'))).toEqual([
    String(valid.messageId).replaceAll('-', ''),
  ]);
});
