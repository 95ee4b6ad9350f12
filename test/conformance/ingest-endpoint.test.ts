// Contract, "Ingest messages" and "Authentication"; ingest (bodies) and error envelope.
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, expectAccepted, expectEnvelope, MESSAGES_PATH, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const batch = () => ({ messages: [track()] });
const bytes = () => Buffer.from(JSON.stringify(batch()));

const post = (headers: Record<string, string>) =>
  client.request(MESSAGES_PATH, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(batch()),
  });

it('a batch with missing header: 400 VALIDATION_ERROR that names the header', async () => {
  const answer = await post({});
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
  expect(answer.body.details).toMatchObject({ header: 'x-service-publishable-key' });
});

it.each([
  ['malformed', 'hello'],
  ['with a wrong checksum', `pk_svcapik-${'a'.repeat(36)}`],
  ['of another prefix', `pk_other-${'a'.repeat(36)}`],
])('a batch with a key that is %s: 401 UNAUTHORISED_REQUEST', async (_, key) => {
  expectEnvelope(await post({ 'x-service-publishable-key': key }), 401, 'UNAUTHORISED_REQUEST');
});

it('a batch with a well-formed key that does not exist: 401 UNAUTHORISED_REQUEST', async () => {
  expectEnvelope(await post({ 'x-service-publishable-key': client.unknownKey }), 401, 'UNAUTHORISED_REQUEST');
});

it('a batch with a key that was refreshed away: 401 UNAUTHORISED_REQUEST', async () => {
  expectEnvelope(await post({ 'x-service-publishable-key': client.endedPublishableKey }), 401, 'UNAUTHORISED_REQUEST');
});

it('a batch with the secret key is not accepted here: 401 UNAUTHORISED_REQUEST', async () => {
  expectEnvelope(await post({ 'x-service-publishable-key': client.secretKey }), 401, 'UNAUTHORISED_REQUEST');
});

it('a batch with no answer contains a key', async () => {
  for (const key of [client.secretKey, client.unknownKey])
    expect(JSON.stringify((await post({ 'x-service-publishable-key': key })).body)).not.toContain(key);
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
  ['identity', (body: Buffer) => body],
  ['GZIP', gzipSync],
])('content-encoding: %s is accepted', async (encoding, compress) => {
  expectAccepted(await client.post(compress(bytes()), { 'content-encoding': encoding }));
});

it('content-encoding: an unknown encoding: 400 VALIDATION_ERROR', async () => {
  expectEnvelope(await client.post(bytes(), { 'content-encoding': 'compress' }), 400, 'VALIDATION_ERROR');
});

it.each(['gzip', 'deflate', 'br', 'zstd'])('content-encoding: broken %s: 400 VALIDATION_ERROR', async (encoding) => {
  expectEnvelope(await client.post(bytes(), { 'content-encoding': encoding }), 400, 'VALIDATION_ERROR');
});

it('content-encoding: a truncated gzip body: 400 VALIDATION_ERROR', async () => {
  const whole = gzipSync(bytes());
  const answer = await client.post(whole.subarray(0, whole.length - 9), { 'content-encoding': 'gzip' });
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
});

it.each([
  ['gzip', gzipSync],
  ['br', brotliCompressSync],
])(
  'content-encoding: a %s body that inflates past 1 MiB: 400 VALIDATION_ERROR that names the limit',
  async (encoding, compress) => {
    const answer = await client.post(compress(Buffer.alloc(64 << 20, 32)), { 'content-encoding': encoding });
    expectEnvelope(answer, 400, 'VALIDATION_ERROR');
    expect(JSON.stringify(answer.body.details)).toContain(String(1 << 20));
  },
);

const padded = (size: number) => {
  const body = bytes();
  return Buffer.concat([body, Buffer.alloc(size - body.length, 32)]);
};

it('a body: exactly 1 MiB is accepted, one byte more is 400 VALIDATION_ERROR that names the limit', async () => {
  expectAccepted(await client.post(padded(1 << 20)));
  const answer = await client.post(padded((1 << 20) + 1));
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
  expect(JSON.stringify(answer.body.details)).toContain(String(1 << 20));
});

it.each<[string, number, string, Record<string, string>]>([
  ['a body far over the limit', 400, 'VALIDATION_ERROR', {}],
  ['a wrong key', 401, 'UNAUTHORISED_REQUEST', { 'x-service-publishable-key': 'hello' }],
  ['a wrong content type', 400, 'VALIDATION_ERROR', { 'content-type': 'text/html' }],
  ['an unknown encoding', 400, 'VALIDATION_ERROR', { 'content-encoding': 'lzma' }],
])(
  'a body: an early refusal of %s reads the rest, so that a client that is still sending 6 MiB gets the answer: %i',
  async (_, status, code, headers) => {
    expectEnvelope(await client.post(padded(6 << 20), headers), status, code);
  },
);

it.each(['', '{', '{"messages":[', 'nothing', '{"messages":[]}}'])(
  'a body: unreadable JSON (%j): 400 VALIDATION_ERROR',
  async (body) => {
    expectEnvelope(await client.post(body), 400, 'VALIDATION_ERROR');
  },
);

it('a body: unreadable JSON: details has the place of the fault', async () => {
  const answer = await client.post('{"messages":[{},\n{"properties":{"fps":NaN}}]}');
  expect(answer).toMatchObject({
    status: 400,
    body: { details: { offset: 38, line: 2, column: 22, messageIndex: 1, found: 'NaN' } },
  });
});

it('a body: a UTF-8 byte order mark before the JSON is ignored', async () => {
  expect((await client.post(`\ufeff${JSON.stringify({ messages: [track()] })}`)).status).toBe(200);
});

it('a body: invalid UTF-8: 400 VALIDATION_ERROR', async () => {
  const body = Buffer.from(JSON.stringify({ messages: [track({ eventName: 'XX' })] }));
  body[body.indexOf('XX')] = 0xff;
  expectEnvelope(await client.post(body), 400, 'VALIDATION_ERROR');
});

it('a body: 10,000 levels of nesting do no harm', async () => {
  const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
  const answer = await client.post(
    JSON.stringify({ messages: [track({ properties: { deep: 0 } })] }).replace('0}', `${deep}}`),
  );
  expect([200, 400]).toContain(answer.status);
  expectAccepted(await client.post(batch()));
});

it('a body: __proto__ and NUL bytes in free-form objects are stored as they are, and have no effect', async () => {
  const body = `{"messages":[${JSON.stringify(track()).replace('{', '{"properties":{"__proto__":{"type":"x"},"nul":"\\u0000"},')}]}`;
  expectAccepted(await client.post(body));
});

it.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON'])(
  'a body: content type %s is accepted',
  async (type) => {
    expectAccepted(await client.post(batch(), { 'content-type': type }));
  },
);

it.each(['text/html', 'application/x-www-form-urlencoded', 'application/json; charset=latin1'])(
  'a body: content type %s: 400 VALIDATION_ERROR',
  async (type) => {
    expectEnvelope(await client.post(batch(), { 'content-type': type }), 400, 'VALIDATION_ERROR');
  },
);

it.each([
  ['GET', '/'],
  ['GET', '/v1'],
  ['POST', '/v1/audience/message'],
  ['GET', MESSAGES_PATH],
  ['PUT', MESSAGES_PATH],
  ['DELETE', MESSAGES_PATH],
  ['PATCH', '/nowhere'],
])('an unknown route or method %s %s: 404 RESOURCE_NOT_FOUND', async (method, path) => {
  expectEnvelope(await client.request(path, { method }), 404, 'RESOURCE_NOT_FOUND');
});

it.each([`${MESSAGES_PATH}?v=1`, `${MESSAGES_PATH}/`, `/${MESSAGES_PATH}`])('an %s is the same route', async (path) => {
  const answer = await client.request(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-service-publishable-key': client.publishableKey },
    body: JSON.stringify(batch()),
  });
  expectAccepted(answer);
});

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';

it('the trace id is taken from a valid traceparent and repeated in x-trace-id', async () => {
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
  expect((await client.post(batch(), { traceparent })).headers.get('x-trace-id')).toBe(traceId);
  const refused = await client.post('{', { traceparent });
  expectEnvelope(refused, 400, 'VALIDATION_ERROR');
  expect(refused.body.trace_id).toBe(traceId);
});

it.each(['nonsense', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, `ff-${traceId}-00f067aa0ba902b7-01`])(
  'the trace id is made when traceparent is not valid: %s',
  async (traceparent) => {
    const made = (await client.post(batch(), { traceparent })).headers.get('x-trace-id');
    expect(made).toMatch(/^[0-9a-f]{32}$/);
    expect(made).not.toBe('0'.repeat(32));
    expect(made).not.toBe(traceId);
  },
);
