import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { expectEnvelope, message, openGateway, sentMessages } from '../../test/open-gateway.ts';

const LIMIT = 1024 * 1024;
const MESSAGE_LIMIT = 32 * 1024;

/** A body that is one message with a piece of JSON text as its properties. */
function withProperties(text: string): string {
  return `{"messages":[${JSON.stringify(message()).slice(0, -1)},"properties":${text}}]}`;
}

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])('a body as %s is stored, and a bomb of it is refused with the limit named', async (encoding, compress) => {
  const { post, producer } = await openGateway();
  const headers = { 'content-encoding': encoding };
  expect((await post(compress(JSON.stringify({ messages: [message()] })), headers)).status).toBe(200);
  expect(sentMessages(producer)).toHaveLength(1);
  const bomb = await post(compress(Buffer.alloc(64 * LIMIT, ' ')), headers);
  expect(bomb.status).toBe(400);
  await expectEnvelope(bomb, 'VALIDATION_ERROR', { limitBytes: LIMIT });
});

it('a body of 2 MiB is refused with the limit named', async () => {
  const { post } = await openGateway();
  const answer = await post(Buffer.alloc(2 * LIMIT, ' '));
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { limitBytes: LIMIT });
});

it.each([
  ['empty', '', { offset: 0, found: 'end of body' }],
  ['not JSON', 'messages=1', { offset: 0, found: 'messages' }],
  ['cut short', '{"messages":[{"type":"track"', { offset: 28, messageIndex: 0, found: 'end of body' }],
  ['two documents', '{"messages":[]}{}', { offset: 15, found: '{' }],
  [
    'invalid UTF-8',
    Buffer.from('{"messages":[{"type":"\xff"}]}', 'latin1'),
    { offset: 22, messageIndex: 0, found: 'byte 0xFF' },
  ],
  [
    'an overlong NUL',
    Buffer.from('{"messages":[{"type":"\xc0\x80"}]}', 'latin1'),
    { offset: 22, messageIndex: 0, found: 'byte 0xC0' },
  ],
  ['UTF-16', Buffer.from('{"messages":[]}', 'utf16le'), { offset: 1, found: 'U+0000' }],
  ['a raw NUL', '{"messages":["\0"]}', { offset: 14, messageIndex: 0, found: 'U+0000' }],
  [
    'a batch with NaN in its second message',
    `{"messages":[{},{"properties":{"fps":NaN}},{}]}`,
    { offset: 37, messageIndex: 1, found: 'NaN' },
  ],
])('a body that is %s is refused with the place of the fault', async (_name, body, { offset, ...fault }) => {
  const { post } = await openGateway();
  const answer = await post(body);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { offset, line: 1, column: offset + 1, ...fault });
});

it('a body behind a UTF-8 byte order mark is read as without it, compressed or not', async () => {
  const { post, producer } = await openGateway();
  const body = Buffer.from(`\ufeff${JSON.stringify({ messages: [message({ eventName: 'marked' })] })}`);
  expect((await post(body)).status).toBe(200);
  expect((await post(gzipSync(body), { 'content-encoding': 'gzip' })).status).toBe(200);
  expect(sentMessages(producer).map(({ eventName }) => eventName)).toEqual(['marked', 'marked']);
});

it('a body in many packets keeps its own bytes when other large bodies come at the same time', async () => {
  const { post, producer } = await openGateway();
  const note = 'x'.repeat(2_000);
  const bodies = Array.from({ length: 12 }, (_, caller) =>
    Array.from({ length: 60 + caller }, (_, n) =>
      message({ anonymousId: `caller-${caller}`, properties: { n, note } }),
    ),
  );
  const answers = await Promise.all(bodies.map((messages) => post({ messages })));
  expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 200));
  const stored = sentMessages(producer).map(({ anonymousId, properties }) => `${anonymousId} ${properties}`);
  const expected = bodies.flat().map((each) => `${each.anonymousId} ${JSON.stringify(each.properties)}`);
  expect(stored.sort()).toEqual(expected.sort());
});

it('a body of white space and one message takes and counts only the memory of that message while it waits', async () => {
  // Each is charged for its mebibyte.
  const { post, producer, metrics } = await openGateway({ RATE_LIMIT_BURST: 100_000 });
  const body = gzipSync(JSON.stringify({ messages: [message()] }).padEnd(LIMIT));
  producer.mode = 'hold';
  const answers = Array.from({ length: 12 }, () => post(body, { 'content-encoding': 'gzip' }));
  await until('all are in flight', () => producer.sent.length === answers.length);
  const records = producer.sent.flatMap((send) => send.records);
  const pinned = new Set(records.flatMap(({ key, value }) => [value.buffer, ...(key === null ? [] : [key.buffer])]));
  expect([...pinned].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThanOrEqual(LIMIT);
  expect(await metrics()).toMatch(/playline_gateway_in_flight_bytes{service="gateway"} [1-9][0-9]{3}\n/);
  for (const { done } of producer.sent) done(null);
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
});

it('a body with one message above 32 KiB, as measured in the body, loses only that message', async () => {
  const { post, producer } = await openGateway();
  const grown = (bytes: number) => {
    const small = JSON.stringify(message({ properties: { text: '' } }));
    return small.replace('"text":""', `"text":"${'x'.repeat(bytes - small.length)}"`);
  };
  const answer = await post(`{"messages":[${grown(MESSAGE_LIMIT)},${grown(MESSAGE_LIMIT + 1)}]}`);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({
    accepted: 1,
    rejections: [{ errors: [{ field: 'message', code: 'INVALID_VALUE' }] }],
  });
  expect(sentMessages(producer)).toHaveLength(1);
});

it('a body keeps properties byte for byte as they were sent', async () => {
  const { post, producer } = await openGateway();
  const texts = [
    '{ "a" : 1.0,\n"b":1e300,"c":12345678901234567890 }',
    '{"__proto__":{"polluted":true},"constructor":1}',
    '{"nul":"\\u0000","pair":"\\ud83d\\uDE00","escaped":"\\u0041"}',
    '{"emoji":"🎮","line":"\u2028"}',
  ];
  for (const text of texts) expect((await post(withProperties(text))).status).toBe(200);
  expect(sentMessages(producer).map(({ properties }) => properties)).toEqual(texts);
  expect('polluted' in {}).toBe(false);
});

it('a body with properties of the deepest allowed nesting is stored; one level deeper, or 10,000, it loses that message', async () => {
  const { post, producer } = await openGateway();
  const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
  expect((await post(withProperties(nested(64)))).status).toBe(200);
  expect(sentMessages(producer)[0]?.properties).toBe(nested(64));
  for (const levels of [65, 5_000]) {
    const answer = await post(withProperties(nested(levels)));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      rejections: [{ errors: [{ field: 'properties', code: 'INVALID_VALUE' }] }],
    });
  }
});

it('a body nested half a million levels deep does no harm', async () => {
  const { post } = await openGateway();
  expect((await post('['.repeat(500_000))).status).toBe(400);
  expect((await post(`${'['.repeat(500_000)}${']'.repeat(500_000)}`)).status).toBe(400);
  const beside = `{"x":${'['.repeat(500_000)}${']'.repeat(500_000)},`;
  expect((await post(withProperties('{}').replace('{', beside))).status).toBe(200);
});

it('a body with the fields of a message under `__proto__` has none of them', async () => {
  const { post } = await openGateway();
  const answer = await post(`{"messages":[{"__proto__":${JSON.stringify(message())}}]}`);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ accepted: 0, rejected: 1 });
});

it('a body with duplicate keys counts the last, as JSON.parse does', async () => {
  const { post, producer } = await openGateway();
  const twice = JSON.stringify(message()).replace('{', '{"eventName":"first","type":"nonsense",');
  expect((await post(`{"messages":[],"messages":[${twice}]}`)).status).toBe(200);
  expect(sentMessages(producer)[0]).toMatchObject({ type: 'track', eventName: 'level_complete' });
});

it('a body with half a surrogate pair in text is stored with U+FFFD in its place, and in an id of a person loses that message', async () => {
  const { post, producer } = await openGateway();
  const context = { library: 'l', libraryVersion: '1', pageTitle: 'a\ud83c' };
  const texts = { eventName: 'LONE\ud800', deviceId: '\udc00', sessionId: 's\ud800', context };
  expect((await post({ messages: [message(texts)] })).status).toBe(200);
  expect(sentMessages(producer)[0]).toMatchObject({
    eventName: 'LONE\ufffd',
    deviceId: '\ufffd',
    sessionId: 's\ufffd',
    pageTitle: 'a\ufffd',
  });
  const answer = await post({ messages: [message({ anonymousId: 'a\ud800' })] });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    rejections: [{ errors: [{ field: 'anonymousId', code: 'INVALID_FORMAT' }] }],
  });
});

it('a body with an escaped NUL in an id is stored as it is', async () => {
  const { post, producer } = await openGateway();
  expect((await post({ messages: [message({ anonymousId: 'a\0b' })] })).status).toBe(200);
  expect(sentMessages(producer)[0]?.anonymousId).toBe('a\0b');
});

it('a body of another content type is refused', async () => {
  const { post } = await openGateway();
  const answer = await post({ messages: [message()] }, { 'content-type': 'text/plain' });
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { header: 'content-type' });
});
