// Contract, "Rules of a batch" (key, body, CORS) and "JSON bodies". Every fault of a body: packages/http.
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, CONSENT_PATH, expectAccepted, expectEnvelope, MESSAGES_PATH, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const HEADER = 'x-service-publishable-key';
const LIMIT = 1 << 20;
const batch = () => ({ messages: [track()] });
const bytes = () => Buffer.from(JSON.stringify(batch()));
const padded = (size: number) => Buffer.concat([bytes(), Buffer.alloc(size - bytes().length, 32)]);

it('a batch without a key: 400 VALIDATION_ERROR that names the header', async () => {
  const headers = { 'content-type': 'application/json' };
  const answer = await client.request(MESSAGES_PATH, { method: 'POST', headers, body: bytes() });
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
  expect(answer.body.details).toMatchObject({ header: HEADER });
});

it.each<[string, () => string]>([
  ['malformed', () => 'hello'],
  ['unknown', () => client.unknownKey],
  ['refreshed away', () => client.endedPublishableKey],
  ['secret', () => client.secretKey],
])('a batch with a key that is %s: 401 UNAUTHORISED_REQUEST, and the answer has no key', async (_, key) => {
  const answer = await client.post(batch(), { [HEADER]: key() });
  expectEnvelope(answer, 401, 'UNAUTHORISED_REQUEST');
  expect(JSON.stringify(answer.body)).not.toContain(key());
});

it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])('a body in %s is accepted; broken, or above 1 MiB when it is inflated, it is 400', async (encoding, compress) => {
  const headers = { 'content-encoding': encoding };
  expectAccepted(await client.post(compress(bytes()), headers));
  expectEnvelope(await client.post(bytes(), headers), 400, 'VALIDATION_ERROR');
  const large = await client.post(compress(Buffer.alloc(64 << 20, 32)), headers);
  expectEnvelope(large, 400, 'VALIDATION_ERROR');
  expect(JSON.stringify(large.body.details)).toContain(String(LIMIT));
});

it('a body of 1 MiB is accepted, one byte more is 400 VALIDATION_ERROR that names the limit', async () => {
  expectAccepted(await client.post(padded(LIMIT)));
  const answer = await client.post(padded(LIMIT + 1));
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
  expect(JSON.stringify(answer.body.details)).toContain(String(LIMIT));
});

it.each<[string, number, string, Record<string, string>]>([
  ['a body far over the limit', 400, 'VALIDATION_ERROR', {}],
  ['a wrong key', 401, 'UNAUTHORISED_REQUEST', { [HEADER]: 'hello' }],
  ['a wrong content type', 400, 'VALIDATION_ERROR', { 'content-type': 'text/html' }],
  ['an unknown encoding', 400, 'VALIDATION_ERROR', { 'content-encoding': 'lzma' }],
])('a client that is still sending 6 MiB gets the refusal of %s: %i', async (_, status, code, headers) => {
  expectEnvelope(await client.post(padded(6 << 20), headers), status, code);
});

it('the details of unreadable JSON have the position of the fault', async () => {
  const answer = await client.post('{"messages":[{},\n{"properties":{"fps":NaN}}]}');
  expect(answer).toMatchObject({
    status: 400,
    body: { details: { offset: 38, line: 2, column: 22, messageIndex: 1, found: 'NaN' } },
  });
});

it('invalid UTF-8: 400 VALIDATION_ERROR', async () => {
  const body = Buffer.from(JSON.stringify({ messages: [track({ eventName: 'XX' })] }));
  body[body.indexOf('XX')] = 0xff;
  expectEnvelope(await client.post(body), 400, 'VALIDATION_ERROR');
});

const origin = 'https://game.example';
const listOf = (text: string | null) =>
  (text ?? '')
    .toLowerCase()
    .split(/\s*,\s*/)
    .sort();

it.each([
  ['POST', MESSAGES_PATH],
  ['GET', CONSENT_PATH],
  ['PUT', CONSENT_PATH],
])('a preflight of %s %s is answered for any origin, without credentials', async (method, path) => {
  const sent = { origin, 'access-control-request-method': method };
  const { status, headers } = await client.request(path, { method: 'OPTIONS', headers: sent });
  expect([200, 204]).toContain(status);
  expect(headers.get('access-control-allow-origin')).toBe('*');
  expect(headers.get('access-control-allow-credentials')).toBeNull();
  const allowed = ['content-encoding', 'content-type', 'traceparent', HEADER];
  expect(listOf(headers.get('access-control-allow-headers'))).toEqual(allowed);
  expect(listOf(headers.get('access-control-allow-methods'))).toEqual(['get', 'post', 'put']);
  expect(headers.get('access-control-max-age')).toBe('7200');
});

it.each([
  ['an accepted batch', () => client.post(batch(), { origin })],
  ['a refused key', () => client.post(batch(), { [HEADER]: 'x', origin })],
  ['an unreadable body', () => client.post('{', { origin })],
  ['a refused consent', () => client.request(CONSENT_PATH, { headers: { origin } })],
])('the answer to %s may be read by any origin, with the exposed headers', async (_, send) => {
  const { headers } = await send();
  expect(headers.get('access-control-allow-origin')).toBe('*');
  const exposed = ['ratelimit', 'ratelimit-policy', 'retry-after', 'x-trace-id'];
  expect(listOf(headers.get('access-control-expose-headers'))).toEqual(exposed);
});
