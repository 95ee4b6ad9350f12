// Contract, "Consent". Changes and their history are tested in consent-changes.test.ts, the 429 in rate-limit.test.ts.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, CONSENT_PATH, expectEnvelope } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const HEADER = 'x-service-publishable-key';
const headers = (key: string | null): Record<string, string> => ({
  'content-type': 'application/json',
  ...(key === null ? {} : { [HEADER]: key }),
});
const read = (anonymousId: string, key: string | null = client.publishableKey) =>
  client.request(`${CONSENT_PATH}?anonymousId=${encodeURIComponent(anonymousId)}`, { headers: headers(key) });
const write = (extra: object = {}, key: string | null = client.publishableKey) => {
  const consent = { anonymousId: `anon-${randomUUID()}`, status: 'full', source: 'banner', ...extra };
  return client.request(CONSENT_PATH, { method: 'PUT', headers: headers(key), body: JSON.stringify(consent) });
};

it('a GET of an unknown anonymousId is 200 with status not_set', async () => {
  expect(await read(`anon-${randomUUID()}`)).toMatchObject({ status: 200, body: { status: 'not_set' } });
});

it.each<[string, () => string | null]>([
  ['missing', () => null],
  ['malformed', () => 'hello'],
  ['unknown', () => client.unknownKey],
  ['secret', () => client.secretKey],
  ['refreshed away', () => client.endedPublishableKey],
])('a key that is %s: 400 VALIDATION_ERROR, details.header names the header', async (_, key) => {
  for (const answer of [await read('a', key()), await write({}, key())]) {
    expectEnvelope(answer, 400, 'VALIDATION_ERROR');
    expect(answer.body.details).toMatchObject({ header: HEADER });
  }
});

it.each([
  { anonymousId: ' \t' },
  { anonymousId: 'x'.repeat(257) },
  { status: 'not_set' },
  { status: null },
  { source: null },
  { source: 'x'.repeat(129) },
])('a PUT with %j: 400 VALIDATION_ERROR', async (extra) => {
  expectEnvelope(await write(extra), 400, 'VALIDATION_ERROR');
});

it.each([' ', 'x'.repeat(257)])('a GET of the anonymousId %j: 400 VALIDATION_ERROR', async (anonymousId) => {
  expectEnvelope(await read(anonymousId), 400, 'VALIDATION_ERROR');
});

it('an anonymousId of 256 code points and a source of 128 are accepted', async () => {
  const anonymousId = '😀'.repeat(256);
  expect(await write({ anonymousId, source: 'é'.repeat(128) })).toMatchObject({ status: 204, body: null });
  expect((await read(anonymousId)).body).toEqual({ status: 'full' });
});
