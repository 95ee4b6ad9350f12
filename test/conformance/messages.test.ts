// Contract, "Message" to "Rules of a batch". Every case of every rule: packages/contracts/src/{message,batch}.test.ts.
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

const BATCH_BYTES = 1 << 20;
const DAY_MS = 86_400_000;
/** Longer than a request takes, so that the test is certainly on one side of a bound. */
const MARGIN_MS = 30_000;

let client: Client & ConformanceGateway;
/** Accepts only the present millisecond. */
let narrow: Client & ConformanceGateway;
beforeAll(async () => {
  [client, narrow] = await Promise.all([
    startGateway(),
    startGateway({ EVENT_AGE_MAX_MS: '0', EVENT_AHEAD_MAX_MS: '0' }),
  ]);
}, START_MAX_MS);
afterAll(() => Promise.all([client.close(), narrow.close()]));

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

it('has the bounds of the time window as settings', async () => {
  expectRejected(await narrow.send(at(-MARGIN_MS)), 'INVALID_VALUE eventTimestamp');
  expectRejected(await narrow.send(at(MARGIN_MS)), 'INVALID_VALUE eventTimestamp');
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
