// Contract, "Erasure".
// Left out: "fenced" of row "Unknown identity", and row "States afterwards" (resolving, fenced, deleting, verified,
// log-expired): only an eraser could show them.
import { randomUUID } from 'node:crypto';
import { type ErasureRequestRecord, erasureRequestCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, DATA_PATH, expectEnvelope } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { findRecord } from './log.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The eight identity types, and an id without a type. */
const USER_SUBJECTS = 9;

const erase = (query: string, headers: Record<string, string> = { 'x-service-api-key': client.secretKey }) =>
  client.request(DATA_PATH + query, { method: 'DELETE', headers });
const idText = ({ erasureId }: ErasureRequestRecord) => erasureId.toString('hex');

function expectQueued(answer: Answer): string {
  expect(answer.status).toBe(202);
  expect(answer.body).toBeNull();
  const erasureId = answer.headers.get('x-erasure-id');
  expect(erasureId).toMatch(UUID);
  return String(erasureId).replaceAll('-', '').toLowerCase();
}

const findRequest = (erasureId: string) =>
  findRecord(
    client.topicPrefix + TOPICS.erasures.name,
    (value) => erasureRequestCodec.decode(value.subarray(FRAME_BYTES)),
    (request) => idText(request) === erasureId,
  );

it.each([
  ['neither', ''],
  ['both', '?anonymousId=a&userId=u'],
  ['a blank anonymousId', '?anonymousId='],
  ['a blank userId', '?userId=%20%09'],
  ['an anonymousId of 257', `?anonymousId=${'x'.repeat(257)}`],
  ['a userId of 257', `?userId=${'x'.repeat(257)}`],
])('an erasure with %s: 400 VALIDATION_ERROR', async (_, query) => {
  expectEnvelope(await erase(query), 400, 'VALIDATION_ERROR');
});

it.each(['anonymousId', 'userId'])('an erasure with %s of 256 code points is accepted', async (name) => {
  expectQueued(await erase(`?${name}=${encodeURIComponent('😀'.repeat(256))}`));
});

it('an erasure with missing x-service-api-key: 400 VALIDATION_ERROR', async () => {
  expectEnvelope(await erase('?userId=u', {}), 400, 'VALIDATION_ERROR');
});

it.each<[string, () => string]>([
  ['malformed', () => 'hello'],
  ['publishable', () => client.publishableKey],
  ['unknown', () => client.unknownKey],
  ['refreshed away', () => client.endedSecretKey],
])('an erasure with anything else than a live secret key (%s): 401 UNAUTHORISED_REQUEST', async (_, key) => {
  expectEnvelope(await erase('?userId=u', { 'x-service-api-key': key() }), 401, 'UNAUTHORISED_REQUEST');
});

it('an erasure with the secret key under the publishable header counts as missing: 400', async () => {
  const answer = await erase('?userId=u', { 'x-service-publishable-key': client.secretKey });
  expectEnvelope(answer, 400, 'VALIDATION_ERROR');
});

it('an erasure with secret-key operations send no CORS headers, also on a preflight', async () => {
  const origin = 'https://game.example';
  const answers = [
    await erase('?userId=u', { 'x-service-api-key': client.secretKey, origin }),
    await erase('', { origin }),
    await client.request(DATA_PATH, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'DELETE' },
    }),
  ];
  for (const { headers } of answers)
    expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
});

it('an erasure of an unknown identity is 202 and the request is recorded', async () => {
  const answer = await erase(`?anonymousId=anon-${randomUUID()}`);
  const request = await findRequest(expectQueued(answer));
  expect(request.environmentId).toBe(client.environmentId);
  expect(request.subjectKeys.length).toBeGreaterThan(0);
  expect(request.traceId).toBe(answer.headers.get('x-trace-id'));
});

it('the erasure covers the id in every identity type and without a type', async () => {
  const request = await findRequest(expectQueued(await erase(`?userId=user-${randomUUID()}`)));
  expect(new Set(request.subjectKeys.map((key) => key.toString('hex'))).size).toBe(USER_SUBJECTS);
});

it('the answer to an erasure is 202 without a body, and every request has its own x-erasure-id', async () => {
  const query = `?userId=user-${randomUUID()}`;
  expect(expectQueued(await erase(query))).not.toBe(expectQueued(await erase(query)));
});
