// Contract, "Erasure". States after the acceptance are tested by the journeys.
import { randomUUID } from 'node:crypto';
import { erasureRequestCodec, FRAME_BYTES, TOPICS } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, DATA_PATH, expectEnvelope } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';
import { findRecord } from './log.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

/** The eight identity types, and an id without a type. */
const USER_SUBJECTS = 9;

const erase = (query: string, headers: Record<string, string> = { 'x-service-api-key': client.secretKey }) =>
  client.request(DATA_PATH + query, { method: 'DELETE', headers });

function expectQueued(answer: Answer): string {
  expect(answer.status).toBe(202);
  expect(answer.body).toBeNull();
  const erasureId = answer.headers.get('x-erasure-id');
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
])('an erasure with %s: 400 VALIDATION_ERROR', async (_, query) => {
  expectEnvelope(await erase(query), 400, 'VALIDATION_ERROR');
});

it('an erasure without x-service-api-key: 400 VALIDATION_ERROR, also with the secret key in the other header', async () => {
  for (const headers of [{}, { 'x-service-publishable-key': client.secretKey }] as Record<string, string>[])
    expectEnvelope(await erase('?userId=u', headers), 400, 'VALIDATION_ERROR');
});

it.each<[string, () => string]>([
  ['malformed', () => 'hello'],
  ['publishable', () => client.publishableKey],
  ['unknown', () => client.unknownKey],
  ['refreshed away', () => client.endedSecretKey],
])('an erasure with a key that is %s: 401 UNAUTHORISED_REQUEST', async (_, key) => {
  expectEnvelope(await erase('?userId=u', { 'x-service-api-key': key() }), 401, 'UNAUTHORISED_REQUEST');
});

it('an erasure sends no CORS headers, also on a preflight', async () => {
  const origin = 'https://game.example';
  const preflight = { origin, 'access-control-request-method': 'DELETE' };
  const answers = [
    await erase('?userId=u', { 'x-service-api-key': client.secretKey, origin }),
    await erase('', { origin }),
    await client.request(DATA_PATH, { method: 'OPTIONS', headers: preflight }),
  ];
  for (const { headers } of answers)
    expect([...headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
});

it('an erasure of an unknown identity is 202 and the request is on the log', async () => {
  const answer = await erase(`?anonymousId=${encodeURIComponent('😀'.repeat(256))}`);
  const request = await findRequest(expectQueued(answer));
  expect(request.environmentId).toBe(client.environmentId);
  expect(request.subjectKeys.length).toBeGreaterThan(0);
  expect(request.traceId).toBe(answer.headers.get('x-trace-id'));
});

it('an erasure covers the id in every identity type and without a type, and has an id of its own', async () => {
  const query = `?userId=user-${randomUUID()}`;
  const erasureId = expectQueued(await erase(query));
  expect(expectQueued(await erase(query))).not.toBe(erasureId);
  const request = await findRequest(erasureId);
  expect(new Set(request.subjectKeys.map((key) => key.toString('hex'))).size).toBe(USER_SUBJECTS);
});
