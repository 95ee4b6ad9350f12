// Contract, "Message" to "Rules of a batch", up to the stored records. Every case of every rule:
// packages/contracts/src/{message,batch}.test.ts.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Client,
  errorsOf,
  expectAccepted,
  expectEnvelope,
  expectRejected,
  message,
  type Sent,
  track,
  withContext,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { linksOnLog, messagesOnLog } from './log.ts';

const BATCH_BYTES = 1 << 20;
const DAY_MS = 86_400_000;
/** Longer than a request takes, so that the test is certainly on one side of a bound. */
const MARGIN_MS = 30_000;

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const many = (count: number) => Array.from({ length: count }, () => track());
const at = (offsetMs: number) => track({ eventTimestamp: new Date(Date.now() + offsetMs).toISOString() });
const sized = (bytes: number) => {
  const empty = track({ properties: { text: '' } });
  return { ...empty, properties: { text: 'x'.repeat(bytes - JSON.stringify(empty).length) } };
};

const ACCEPTED: [string, () => Sent[]][] = [
  [
    'what a type requires and nothing more',
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
    'strings of the longest length, in code points',
    () => [
      track({ eventName: '😀'.repeat(256) }),
      withContext({ userAgent: 'é'.repeat(512), pageUrl: 'é'.repeat(2048) }),
    ],
  ],
  [
    'null and blank optional fields, and unknown ones',
    () => [
      track({ anonymousId: ' ', deviceId: null, properties: null, context: null, test: null }),
      withContext({ locale: '', screenDensity: null, plugin: { name: 'x' } }),
      track({ unknown: { deep: [1, 2, 3] } }),
    ],
  ],
  ['times just inside the window', () => [at(-30 * DAY_MS + MARGIN_MS), at(DAY_MS - MARGIN_MS)]],
  ['a message of exactly 32 KiB', () => [sized(32 * 1024)]],
  ['a batch of 100', () => many(100)],
];

it.each(ACCEPTED)('accepts %s', async (_, messages) => {
  expectAccepted(await client.send(...messages()), messages().length);
});

const same = { fromId: 'player-1', toId: ' player-1 ', fromType: 'steam', toType: 'epic' };
const REJECTED: [string, () => unknown][] = [
  ['MISSING_REQUIRED_FIELD type', () => track({ type: null })],
  ['UNSUPPORTED_TYPE type', () => track({ type: 'group' })],
  ['INVALID_FORMAT type', () => track({ type: 7 })],
  ['MISSING_REQUIRED_FIELD messageId', () => track({ messageId: ' ' })],
  ['INVALID_FORMAT messageId', () => track({ messageId: `{${randomUUID()}}` })],
  ['MISSING_REQUIRED_FIELD eventName', () => track({ eventName: ' \t\n' })],
  ['MISSING_REQUIRED_FIELD userId', () => message('identify', { userId: undefined })],
  ['MISSING_REQUIRED_FIELD toId', () => message('alias', { toId: '' })],
  ['INVALID_VALUE toId', () => message('alias', same)],
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
  ['INVALID_VALUE eventTimestamp', () => at(-30 * DAY_MS - MARGIN_MS)],
  ['INVALID_VALUE eventTimestamp', () => at(DAY_MS + MARGIN_MS)],
  ['INVALID_VALUE message', () => sized(32 * 1024 + 1)],
  ['INVALID_FORMAT message', () => []],
];

it.each(REJECTED)('rejects with %s', async (error, build) => {
  expectRejected(await client.send(build()), error);
});

it('accepts a lone surrogate in text, but not in an id', async () => {
  const post = (field: string) =>
    client.post(JSON.stringify({ messages: [track({ [field]: 'LONE' })] }).replace('LONE', 'a\\ud800b'));
  expectAccepted(await post('eventName'));
  expectRejected(await post('anonymousId'), 'INVALID_FORMAT anonymousId');
});

it('uses the last of duplicate keys in one object', async () => {
  const good = JSON.stringify(track());
  expectAccepted(await client.post(`{"messages":[${good.replace('{', '{"type":"nothing",')}]}`));
  const answer = await client.post(`{"messages":[${good.replace(/}$/, ',"type":"nothing"}')}]}`);
  expectRejected(answer, 'UNSUPPORTED_TYPE type');
});

it.each([
  ['no messages', { messages: [] }],
  ['101 messages', { messages: many(101) }],
  ['no array', { messages: 'x' }],
  ['no object', [track()]],
])('refuses a batch with %s: 400 VALIDATION_ERROR envelope', async (_, body) => {
  expectEnvelope(await client.post(JSON.stringify(body)), 400, 'VALIDATION_ERROR');
});

it('accepts the good messages of a batch and lists every error of a bad one', async () => {
  const bad = track({ eventName: null, surface: 'phone', test: 1, context: { library: 'a' } });
  const answer = await client.send(...many(50), bad, ...many(49));
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({ success: true, accepted: 99, rejected: 1 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(answer.body.rejections[0].messageId).toBe(bad.messageId);
  expect(errorsOf(answer)).toEqual([
    'INVALID_ENUM surface',
    'INVALID_FORMAT test',
    'MISSING_REQUIRED_FIELD context.libraryVersion',
    'MISSING_REQUIRED_FIELD eventName',
  ]);
});

it('answers 400 with the MessagesResponse if all messages are bad', async () => {
  const answer = await client.send(track({ test: 'yes' }), track({ surface: 'phone' }));
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({ success: false, accepted: 0, rejected: 2 });
  expect(Object.keys(answer.body).sort()).toEqual(['accepted', 'rejected', 'rejections', 'success']);
});

it('rejects every copy of a messageId in one batch, in one entry with the first spelling', async () => {
  const messageId = randomUUID();
  const copies = [messageId.toUpperCase(), messageId].map((id) => track({ messageId: id }));
  const answer = await client.send(track(), ...copies, track({ messageId, surface: 'phone' }));
  expect(answer.body).toMatchObject({ success: true, accepted: 1, rejected: 3 });
  expect(answer.body.rejections).toHaveLength(1);
  expect(answer.body.rejections[0].messageId).toBe(messageId.toUpperCase());
  expect(errorsOf(answer)).toEqual(['DUPLICATE_MESSAGE_ID messageId', 'INVALID_ENUM surface']);
});

it('accepts a messageId again in a later batch', async () => {
  const sent = track();
  expectAccepted(await client.send(sent));
  expectAccepted(await client.send(sent, message('page')), 2);
});

it('repeats a messageId in every character, also the longest that a batch can hold', async () => {
  const space = BATCH_BYTES - JSON.stringify({ messages: [track({ messageId: '' })] }).length;
  for (const messageId of ['é😀\u0000\n"\\</script>\u2028\u00a0', 'x'.repeat(space)]) {
    const answer = await client.send(track({ messageId }));
    expect(answer.body.rejections[0].messageId).toBe(messageId);
    expect(Number(answer.headers.get('content-length'))).toBeLessThan(BATCH_BYTES + 1024);
  }
});

it('repeats a messageId that is no string as JSON, in at most twice the length of the batch', async () => {
  const space = BATCH_BYTES - JSON.stringify({ messages: [track({ messageId: [''] })] }).length;
  // Each quotation mark takes an escape.
  const messageId = Array.from({ length: Math.floor(space / 3) + 1 }, () => '');
  const answer = await client.send(track({ messageId }));
  expectRejected(answer, 'INVALID_FORMAT messageId', 'INVALID_VALUE message');
  expect(answer.body.rejections[0].messageId).toBe(JSON.stringify(messageId));
  expect(Number(answer.headers.get('content-length'))).toBeLessThan(2 * BATCH_BYTES + 1024);
});

async function keep(...sent: Sent[]) {
  expectAccepted(await client.send(...sent), sent.length);
  const records = await messagesOnLog(
    client.topicPrefix,
    sent.map(({ messageId }) => messageId),
  );
  expect(records).toHaveLength(sent.length);
  return records;
}

it('unknown extra fields are not stored, neither of a message nor of its context', async () => {
  const word = `word-${randomUUID()}`;
  const [kept] = await keep({ ...withContext({ plugin: word }), extra: { deep: [word] } });
  expect(kept?.record.library).toBe('playline-web');
  expect(kept?.bytes.includes(word)).toBe(false);
});

it('null in an optional field is stored as if the field were absent, also in context', async () => {
  const fields = ['anonymousId', 'deviceId', 'userId', 'identityType', 'surface', 'consentLevel', 'test', 'traits'];
  const [messageId, eventTimestamp] = [randomUUID(), new Date().toISOString()];
  const nulls = Object.fromEntries(fields.map((field) => [field, null]));
  const context = { library: 'a', libraryVersion: '1' };
  const [one] = await keep(track({ messageId, eventTimestamp, context }));
  expectAccepted(
    await client.send(track({ messageId, eventTimestamp, ...nulls, context: { ...context, locale: null } })),
  );
  const [, two] = await messagesOnLog(client.topicPrefix, [messageId]);
  const apart = { receivedAt: 0, traceId: '' };
  expect({ ...two?.record, ...apart }).toEqual({ ...one?.record, ...apart });
});

it.each(['', ' ', '\t\n', '\u3000'])('a blank optional id %j is absent: it owns nothing', async (blank) => {
  const [kept] = await keep(track({ anonymousId: blank, userId: blank, deviceId: blank }));
  expect(kept?.key).toBeNull();
  expect(kept?.record).toMatchObject({ anonymousId: '', userId: '' });
});

it.each([undefined, null, '', '  '])(
  'a blank optional id anonymousId %j of an identify is absent: it links nothing',
  async (blank) => {
    const sent = message('identify', { anonymousId: blank });
    const linking = message('identify', { anonymousId: `anon-${randomUUID()}` });
    await keep(sent, linking);
    const links = await linksOnLog(client.topicPrefix, [sent.messageId, linking.messageId]);
    expect(links.map(({ fromId }) => fromId)).toEqual([linking.anonymousId]);
  },
);

it('a blank optional id beside a valid id leaves that id as the owner', async () => {
  const [blank] = await keep(track({ anonymousId: 'visitor', userId: ' ' }));
  const [absent] = await keep(track({ anonymousId: 'visitor' }));
  expect(blank?.key).not.toBeNull();
  expect(blank?.key).toEqual(absent?.key);
});

it.each(['N/A', ' undefined ', '{"id":null}', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])(
  'a placeholder as an id %j is stored and owns nothing',
  async (placeholder) => {
    const [kept] = await keep(track({ anonymousId: placeholder, userId: placeholder }));
    expect(kept?.key).toBeNull();
    expect(kept?.record).toMatchObject({ anonymousId: placeholder, userId: placeholder });
  },
);

it('an alias from the own anonymous id without a type names the anonymous identity, and any other id without a type an untyped one', async () => {
  const own = `anon-${randomUUID()}`;
  const same = message('alias', { anonymousId: own, fromId: ` ${own}`, fromType: undefined });
  const other = message('alias', { anonymousId: own, fromId: `anon-${randomUUID()}`, fromType: undefined });
  const [kept] = await keep(same, other);
  expect(kept?.record.fromKey).toEqual(kept?.record.anonymousKey);
  const links = await linksOnLog(client.topicPrefix, [same.messageId, other.messageId]);
  expect(links.map(({ fromKind }) => fromKind).sort()).toEqual(['anonymous', 'untyped']);
});

/** JSON text of a track event with spellings that `JSON.stringify` never produces, such as escapes and long numbers. */
async function keepAs(fields: Record<string, unknown>, texts: Record<string, string>) {
  const sent = track(fields);
  let body = JSON.stringify({ messages: [sent] });
  for (const [from, text] of Object.entries(texts)) body = body.replace(from, text);
  expectAccepted(await client.post(body), 1);
  const [kept] = await messagesOnLog(client.topicPrefix, [sent.messageId]);
  return kept?.record;
}

it('text and free-form objects are stored with a lone surrogate as U+FFFD, in text and in free-form objects', async () => {
  const fields = { eventName: 'NAME', properties: { a: 'TEXT' }, traits: { a: 'PAIR' } };
  const kept = await keepAs(fields, { NAME: 'a\\ud83c', TEXT: '\\udf00b', PAIR: '\\ud83c\\udf00' });
  expect(kept).toMatchObject({ eventName: 'a\ufffd', properties: '{"a":"\\ufffdb"}' });
  expect(kept?.traits).toBe('{"a":"\\ud83c\\udf00"}');
});

it('text and free-form objects are stored with an integer beyond 64 bits and a number beyond a double as strings of the same characters', async () => {
  const fields = { properties: { a: 'BIG' }, traits: { a: 'HUGE' } };
  const kept = await keepAs(fields, { '"BIG"': '20000000000000000000', '"HUGE"': '[-1e400,18446744073709551615]' });
  expect(kept).toMatchObject({
    properties: '{"a":"20000000000000000000"}',
    traits: '{"a":["-1e400",18446744073709551615]}',
  });
});

it.each(['track', 'page', 'screen', 'identify', 'alias'])(
  'test: true of a %s goes unchanged to its record',
  async (type) => {
    const flags = [true, false, undefined];
    const sent = flags.map((test) => message(type, { test }));
    const kept = await keep(...sent);
    const byId = new Map(kept.map(({ record }) => [record.messageId.toString('hex'), record.test]));
    const found = sent.map(({ messageId }) => byId.get(String(messageId).replaceAll('-', '')));
    expect(found).toEqual([true, false, false]);
  },
);

it('a rejected message is not on the log, while the accepted messages of its batch are, each once', async () => {
  const [good, bad] = [track(), track({ surface: 'phone' })];
  expect((await client.send(good, bad)).body).toMatchObject({ accepted: 1, rejected: 1 });
  const kept = await messagesOnLog(client.topicPrefix, [good.messageId, bad.messageId]);
  expect(kept.map(({ record }) => record.messageId.toString('hex'))).toEqual([
    String(good.messageId).replaceAll('-', ''),
  ]);
});
