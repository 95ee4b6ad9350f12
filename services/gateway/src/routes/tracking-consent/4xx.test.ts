import { gzipSync } from 'node:zlib';
import { until } from '@playline/testkit';
import { expect, it } from 'vitest';
import { CONSENT, getConsent, putConsent, wanted } from '../../test/audience-calls.ts';
import { expectEnvelope, openGateway } from '../../test/open-gateway.ts';

const LONG_ID = 'x'.repeat(257);

it.each([
  ['no anonymousId', ''],
  ['a blank one', '?anonymousId=%20+'],
  ['an empty one', '?anonymousId'],
  ['one that is too long', `?anonymousId=${LONG_ID}`],
  ['two', '?anonymousId=a&anonymousId=a'],
  ['two, one of them encoded', '?anonymousId=a&anonymous%49d=b'],
  ['another spelling', '?anonymousid=a'],
])('a 400 of the consent operations answers a GET with %s', async (_name, query) => {
  const answer = await getConsent(await openGateway(), query);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { field: 'anonymousId' });
});

it.each(['%', '%zz', '%ff', '%ed%a0%80', '%c3'])(
  'a 400 of the consent operations answers a GET whose id %s is not percent-encoded UTF-8',
  async (id) => {
    const answer = await getConsent(await openGateway(), `?anonymousId=a${id}`);
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR');
  },
);

it.each([
  ['anonymousId', undefined],
  ['anonymousId', null],
  ['anonymousId', ' \t'],
  ['anonymousId', 7],
  ['anonymousId', ['a']],
  ['anonymousId', LONG_ID],
  ['anonymousId', ' Undefined '],
  ['anonymousId', '{}'],
  ['status', undefined],
  ['status', null],
  ['status', 'not_set'],
  ['status', 'FULL'],
  ['status', 1],
  ['status', 'toString'],
  ['source', undefined],
  ['source', null],
  ['source', ''],
  ['source', {}],
  ['source', 'x'.repeat(129)],
])('a 400 of the consent operations answers a PUT with %s %j', async (field, value) => {
  const gateway = await openGateway();
  const answer = await putConsent(gateway, wanted({ [field]: value }));
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR', { field });
  expect(gateway.producer.sent).toEqual([]);
});

it('a 400 of the consent operations answers a PUT with a lone surrogate, which is not Unicode text', async () => {
  const body = '{"anonymousId":"a\\ud800","status":"full","source":"s"}';
  await expectEnvelope(await putConsent(await openGateway(), body), 'VALIDATION_ERROR', { field: 'anonymousId' });
});

it.each([
  ['nothing', '', {}, { offset: 0, line: 1, column: 1, found: 'end of body' }],
  ['no JSON', '{\n"status":None}', {}, { offset: 11, line: 2, column: 10, found: 'None' }],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, { offset: 1, line: 1, column: 2, found: 'byte 0xFF' }],
  ['an array', '[]', {}, null],
  ['null', 'null', {}, null],
  ['another type', '{}', { 'content-type': 'text/plain' }, { header: 'content-type' }],
  ['another encoding', '{}', { 'content-encoding': 'lzma' }, { header: 'content-encoding' }],
  ['a broken encoding', 'x', { 'content-encoding': 'gzip' }, { header: 'content-encoding' }],
  ['too many bytes', ' '.repeat(16 * 1024 + 1), {}, { limitBytes: 16 * 1024 }],
  ['a bomb', gzipSync(Buffer.alloc(1024 * 1024)), { 'content-encoding': 'gzip' }, { limitBytes: 16 * 1024 }],
])(
  'a 400 of the consent operations answers a PUT of %s, and frees its capacity',
  async (_name, body, headers, details) => {
    const gateway = await openGateway();
    const answer = await putConsent(gateway, body, headers as Record<string, string>);
    expect(answer.status).toBe(400);
    await expectEnvelope(answer, 'VALIDATION_ERROR', details);
    expect(await gateway.metrics()).toContain('playline_gateway_in_flight_bytes{service="gateway"} 0');
  },
);

it.each(['POST', 'DELETE', 'PATCH'])('a 404 at the consent path answers %s', async (method) => {
  const { url } = await openGateway();
  const answer = await fetch(url + CONSENT, { method });
  expect(answer.status).toBe(404);
  await expectEnvelope(answer, 'RESOURCE_NOT_FOUND');
});

it('a 429 of the consent operations answers with Retry-After, before the body is read, while the bytes in flight are at their bound', async () => {
  const gateway = await openGateway({ BYTES_IN_FLIGHT_MAX: 100 });
  gateway.producer.mode = 'hold';
  const first = putConsent(gateway, wanted());
  await until('the change is sent', () => gateway.producer.sent.length === 1);
  const answer = await putConsent(gateway, wanted());
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('1');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
  gateway.producer.sent[0]!.done(null);
  expect((await first).status).toBe(204);
});
