// Contract, "Rules of a batch" (key, body, CORS, rate limit headers), "JSON bodies", "Erasure" and "Error envelope".
// packages/http tests every error in a body, failures.test.ts tests 500, test/journeys tests later erasure states.
import { randomUUID } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { erasureRequestCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Client,
  type ClientResponse,
  CONSENT_PATH,
  DATA_PATH,
  expectAccepted,
  expectEnvelope,
  expectRateLimitFields,
  MESSAGES_PATH,
  track,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { findRecord } from './log.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway({ RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '40' });
}, START_MAX_MS);
afterAll(() => client.close());

const HEADER = 'x-service-publishable-key';
const LIMIT = 1 << 20;
const batch = () => ({ messages: [track()] });
const bytes = () => Buffer.from(JSON.stringify(batch()));
const padded = (size: number) => Buffer.concat([bytes(), Buffer.alloc(size - bytes().length, 32)]);

it('a batch without a key returns 400 VALIDATION_ERROR with the header name', async () => {
  const headers = { 'content-type': 'application/json' };
  const response = await client.request(MESSAGES_PATH, { method: 'POST', headers, body: bytes() });
  expectEnvelope(response, 400, 'VALIDATION_ERROR');
  expect(response.body.details).toMatchObject({ header: HEADER });
});

it.each<[string, () => string]>([
  ['malformed', () => 'hello'],
  ['unknown', () => client.unknownKey],
  ['replaced', () => client.replacedPublishableKey],
  ['secret', () => client.secretKey],
])('a batch with a %s key returns 401 UNAUTHORISED_REQUEST without repeating the key', async (_, key) => {
  const response = await client.post(batch(), { [HEADER]: key() });
  expectEnvelope(response, 401, 'UNAUTHORISED_REQUEST');
  expect(JSON.stringify(response.body)).not.toContain(key());
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])(
  'a %s body is accepted, and a corrupt body or a body of more than 1 MiB after decompression returns 400',
  async (encoding, compress) => {
    const headers = { 'content-encoding': encoding };
    expectAccepted(await client.post(compress(bytes()), headers));
    expectEnvelope(await client.post(bytes(), headers), 400, 'VALIDATION_ERROR');
    const large = await client.post(compress(Buffer.alloc(64 << 20, 32)), headers);
    expectEnvelope(large, 400, 'VALIDATION_ERROR');
    expect(JSON.stringify(large.body.details)).toContain(String(LIMIT));
  },
);

it('a body of 1 MiB is accepted, and a larger body returns 400 VALIDATION_ERROR with the limit', async () => {
  expectAccepted(await client.post(padded(LIMIT)));
  const response = await client.post(padded(LIMIT + 1));
  expectEnvelope(response, 400, 'VALIDATION_ERROR');
  expect(JSON.stringify(response.body.details)).toContain(String(LIMIT));
});

it.each<[string, number, string, Record<string, string>]>([
  ['a body far above the limit', 400, 'VALIDATION_ERROR', {}],
  ['a wrong key', 401, 'UNAUTHORISED_REQUEST', { [HEADER]: 'hello' }],
  ['a wrong content type', 400, 'VALIDATION_ERROR', { 'content-type': 'text/html' }],
  ['an unsupported encoding', 400, 'VALIDATION_ERROR', { 'content-encoding': 'lzma' }],
])('a client that is still sending 6 MiB receives the error for %s: %i', async (_, status, code, headers) => {
  expectEnvelope(await client.post(padded(6 << 20), headers), status, code);
});

it('the error for unreadable JSON contains the position of the error', async () => {
  const response = await client.post('{"messages":[{},\n{"properties":{"fps":NaN}}]}');
  expect(response).toMatchObject({
    status: 400,
    body: { details: { offset: 38, line: 2, column: 22, messageIndex: 1, found: 'NaN' } },
  });
});

it('a batch with invalid UTF-8 returns 400 VALIDATION_ERROR', async () => {
  const body = Buffer.from(JSON.stringify({ messages: [track({ eventName: 'XX' })] }));
  body[body.indexOf('XX')] = 0xff;
  expectEnvelope(await client.post(body), 400, 'VALIDATION_ERROR');
});

const origin = 'https://game.example';
const parseList = (text: string | null) =>
  (text ?? '')
    .toLowerCase()
    .split(/\s*,\s*/)
    .sort();

it.each([
  ['POST', MESSAGES_PATH],
  ['GET', CONSENT_PATH],
  ['PUT', CONSENT_PATH],
])('a preflight for %s %s allows any origin, without credentials', async (method, path) => {
  const sent = { origin, 'access-control-request-method': method };
  const { status, headers } = await client.request(path, { method: 'OPTIONS', headers: sent });
  expect([200, 204]).toContain(status);
  expect(headers.get('access-control-allow-origin')).toBe('*');
  expect(headers.get('access-control-allow-credentials')).toBeNull();
  const allowed = ['content-encoding', 'content-type', 'traceparent', HEADER];
  expect(parseList(headers.get('access-control-allow-headers'))).toEqual(allowed);
  expect(parseList(headers.get('access-control-allow-methods'))).toEqual(['get', 'post', 'put']);
  expect(headers.get('access-control-max-age')).toBe('7200');
});

it.each([
  ['an accepted batch', () => client.post(batch(), { origin })],
  ['a refused key', () => client.post(batch(), { [HEADER]: 'x', origin })],
  ['an unreadable body', () => client.post('{', { origin })],
  ['a refused consent', () => client.request(CONSENT_PATH, { headers: { origin } })],
])('the response to %s allows any origin and exposes the headers of the contract', async (_, send) => {
  const { headers } = await send();
  expect(headers.get('access-control-allow-origin')).toBe('*');
  const exposed = ['ratelimit', 'ratelimit-policy', 'retry-after', 'x-trace-id'];
  expect(parseList(headers.get('access-control-expose-headers'))).toEqual(exposed);
});

/** Eight identity types, and one untyped identity. */
const USER_SUBJECTS = 9;

const erase = (query: string, headers: Record<string, string> = { 'x-service-api-key': client.secretKey }) =>
  client.request(DATA_PATH + query, { method: 'DELETE', headers });

function expectQueued(response: ClientResponse): string {
  expect(response.status).toBe(202);
  expect(response.body).toBeNull();
  const erasureId = response.headers.get('x-erasure-id');
  expect(erasureId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i);
  return String(erasureId).replaceAll('-', '').toLowerCase();
}

const findRequest = (id: string) =>
  findRecord(
    client.topicPrefix + TOPICS.erasures.name,
    (value) => erasureRequestCodec.decode(value.subarray(FRAME_BYTES)),
    ({ erasureId }) => erasureId.toString('hex') === id,
  );

it.each([
  ['neither id', ''],
  ['both ids', '?anonymousId=a&userId=u'],
  ['a blank id', '?userId=%20%09'],
  ['an id of 257 characters', `?anonymousId=${'x'.repeat(257)}`],
])('an erasure with %s returns 400 VALIDATION_ERROR', async (_, query) => {
  expectEnvelope(await erase(query), 400, 'VALIDATION_ERROR');
});

it('an erasure without x-service-api-key returns 400, even with the secret key in the publishable key header', async () => {
  for (const headers of [{}, { 'x-service-publishable-key': client.secretKey }] as Record<string, string>[])
    expectEnvelope(await erase('?userId=u', headers), 400, 'VALIDATION_ERROR');
});

it.each<[string, () => string]>([
  ['malformed', () => 'hello'],
  ['publishable', () => client.publishableKey],
  ['unknown', () => client.unknownKey],
  ['replaced', () => client.replacedSecretKey],
])('an erasure with a %s key returns 401 UNAUTHORISED_REQUEST', async (_, key) => {
  expectEnvelope(await erase('?userId=u', { 'x-service-api-key': key() }), 401, 'UNAUTHORISED_REQUEST');
});

it('responses of the erasure endpoint have no CORS headers, including responses to preflights', async () => {
  const origin = 'https://game.example';
  const preflight = { origin, 'access-control-request-method': 'DELETE' };
  const responses = [
    await erase('?userId=u', { 'x-service-api-key': client.secretKey, origin }),
    await erase('', { origin }),
    await client.request(DATA_PATH, { method: 'OPTIONS', headers: preflight }),
  ];
  for (const { headers } of responses)
    expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
});

it('an erasure of an unknown identity returns 202, and the request is in the log', async () => {
  const response = await erase(`?anonymousId=${encodeURIComponent('😀'.repeat(256))}`);
  const request = await findRequest(expectQueued(response));
  expect(request.environmentId).toBe(client.environmentId);
  expect(request.subjectKeys.length).toBeGreaterThan(0);
  expect(request.traceId).toBe(response.headers.get('x-trace-id'));
});

it('an erasure covers the user id under every identity type and as an untyped id, and has a unique erasure id', async () => {
  const query = `?userId=user-${randomUUID()}`;
  const erasureId = expectQueued(await erase(query));
  expect(expectQueued(await erase(query))).not.toBe(erasureId);
  const request = await findRequest(erasureId);
  expect(new Set(request.subjectKeys.map((key) => key.toString('hex'))).size).toBe(USER_SUBJECTS);
});

type Headers = Record<string, string>;
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const publishable = () => ({ 'content-type': 'application/json', 'x-service-publishable-key': client.publishableKey });
const put = (body: string, headers: Headers) =>
  client.request(CONSENT_PATH, { method: 'PUT', headers: { ...publishable(), ...headers }, body });
const post = (headers: Headers) => client.post({ messages: [track()] }, headers);

const ERRORS: [string, number, string, (headers: Headers) => Promise<ClientResponse>][] = [
  ['an unknown route', 404, 'RESOURCE_NOT_FOUND', (headers) => client.request('/v2/audience', { headers })],
  ['a wrong method', 404, 'RESOURCE_NOT_FOUND', (headers) => client.request(MESSAGES_PATH, { method: 'PUT', headers })],
  ['an unreadable batch', 400, 'VALIDATION_ERROR', (headers) => client.post('{', headers)],
  ['an unreadable consent', 400, 'VALIDATION_ERROR', (headers) => put('{', headers)],
  [
    'an unsupported content type',
    400,
    'VALIDATION_ERROR',
    (headers) => post({ ...headers, 'content-type': 'text/html' }),
  ],
  ['an unsupported encoding', 400, 'VALIDATION_ERROR', (headers) => post({ ...headers, 'content-encoding': 'lzma' })],
  ['a consent that is too large', 400, 'VALIDATION_ERROR', (headers) => put(' '.repeat(2 << 20), headers)],
  ['a malformed key', 401, 'UNAUTHORISED_REQUEST', (headers) => post({ ...headers, 'x-service-publishable-key': 'x' })],
  [
    'an erasure without a key',
    400,
    'VALIDATION_ERROR',
    (headers) => client.request(DATA_PATH, { method: 'DELETE', headers }),
  ],
];

it.each(ERRORS)(
  'the response to %s is %i %s in an error envelope, with the trace id from traceparent or a new trace id',
  async (_, status, code, send) => {
    const traced = await send({ traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` });
    expectEnvelope(traced, status, code);
    expect(traced.body.trace_id).toBe(TRACE_ID);
    expect(traced.headers.get('content-type')).toMatch(/^application\/json/);
    const [untraced, malformed] = [await send({}), await send({ traceparent: 'nonsense' })];
    expectEnvelope(untraced, status, code);
    expect(untraced.body.trace_id).not.toBe(malformed.body.trace_id);
  },
);

it('a successful response also has x-trace-id', async () => {
  expect((await post({})).headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
});

const consent = (query: string, headers: Record<string, string>) => client.request(CONSENT_PATH + query, { headers });
const LIMITED_RESPONSES: [string, number, () => Promise<ClientResponse>][] = [
  ['a batch', 200, () => client.send(track())],
  ['a batch with only invalid messages', 400, () => client.send(track({ surface: 'phone' }))],
  ['an unreadable batch', 400, () => client.post('{')],
  ['a batch with an unknown key', 401, () => client.post('{', { [HEADER]: client.unknownKey })],
  ['a batch with an unsupported encoding', 400, () => client.post('{', { 'content-encoding': 'lzma' })],
  ['a consent read', 200, () => consent('?anonymousId=a', { [HEADER]: client.publishableKey })],
  ['a consent read without a key', 400, () => consent('?anonymousId=a', {})],
  ['an erasure', 202, () => erase('?userId=u')],
  ['an erasure with a wrong key', 401, () => erase('?userId=u', { 'x-service-api-key': 'hello' })],
];

it.each(LIMITED_RESPONSES)('the response to %s has RateLimit and RateLimit-Policy (%i)', async (_, status, send) => {
  const response = await send();
  expect(response.status).toBe(status);
  expectRateLimitFields(response);
});

it('by default, a burst of 10,000 messages is accepted and the policy has a window of two seconds', async () => {
  const headers = { [HEADER]: client.otherPublishableKey };
  for (let sent = 0; sent < 10_000; sent += 1000) {
    const batches = Array.from({ length: 10 }, () =>
      client.post({ messages: Array.from({ length: 100 }, () => track()) }, headers),
    );
    for (const response of await Promise.all(batches)) {
      expectAccepted(response, 100);
      expect(response.headers.get('ratelimit-policy')).toBe('"messages";q=10000;w=2');
    }
  }
});

it('the link in an error envelope opens a documentation page for the code', async () => {
  const flood = Array.from({ length: 90 }, () =>
    client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: publishable() }),
  );
  const limited = (await Promise.all(flood)).find(({ status }) => status === 429);
  const refused = await post({ 'x-service-publishable-key': 'x' });
  const responses = [await client.post('{'), refused, await client.request('/nowhere'), limited];
  const links = new Set<string>();
  for (const response of responses) {
    const link: string = response?.body.link;
    links.add(link);
    const page = await fetch(link);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toMatch(/^text\//);
    expect(await page.text()).toContain(response?.body.code);
  }
  expect(links.size).toBe(responses.length);
});
