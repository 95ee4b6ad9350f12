// Contract, ingest, row "Rate limit": the defaults, and the header fields on every answer.
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Answer,
  type Client,
  CONSENT_PATH,
  DATA_PATH,
  expectAccepted,
  expectRateLimitFields,
  MESSAGES_PATH,
  track,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway();
}, START_MAX_MS);
afterAll(() => client.close());

const json = { 'content-type': 'application/json' };
const publishable = () => ({ ...json, 'x-service-publishable-key': client.publishableKey });
const batch = (headers: Record<string, string>) =>
  client.request(MESSAGES_PATH, { method: 'POST', headers, body: JSON.stringify({ messages: [track()] }) });
const readConsent = (query: string, headers: Record<string, string>) =>
  client.request(CONSENT_PATH + query, { headers });
const writeConsent = (body: unknown) =>
  client.request(CONSENT_PATH, { method: 'PUT', headers: publishable(), body: JSON.stringify(body) });
const erase = (query: string, headers: Record<string, string>) =>
  client.request(DATA_PATH + query, { method: 'DELETE', headers });
const secret = () => ({ 'x-service-api-key': client.secretKey });

const ANSWERS: [string, number, () => Promise<Answer>][] = [
  ['a batch', 200, () => batch(publishable())],
  ['a batch without a key', 400, () => batch(json)],
  ['a batch with a wrong key', 401, () => batch({ ...json, 'x-service-publishable-key': 'hello' })],
  ['a batch with an unknown key', 401, () => batch({ ...json, 'x-service-publishable-key': client.unknownKey })],
  ['a batch of another content type', 400, () => batch({ ...publishable(), 'content-type': 'text/html' })],
  ['a batch of an unknown encoding', 400, () => batch({ ...publishable(), 'content-encoding': 'lzma' })],
  ['a consent that is read', 200, () => readConsent('?anonymousId=a', publishable())],
  ['a consent without an id', 400, () => readConsent('', publishable())],
  ['a consent without a key', 400, () => readConsent('?anonymousId=a', {})],
  ['a consent that is written', 204, () => writeConsent({ anonymousId: 'a', status: 'full', source: 'x' })],
  ['a consent that is refused', 400, () => writeConsent({})],
  ['an erasure', 202, () => erase('?userId=u', secret())],
  ['an erasure of nobody', 400, () => erase('', secret())],
  ['an erasure without a key', 400, () => erase('?userId=u', {})],
  ['an erasure with a wrong key', 401, () => erase('?userId=u', { 'x-service-api-key': 'hello' })],
];

it.each(ANSWERS)('RateLimit and RateLimit-Policy are on the answer to %s: %i', async (_, status, send) => {
  const answer = await send();
  expect(answer.status).toBe(status);
  expectRateLimitFields(answer);
});

it('RateLimit and RateLimit-Policy state the default of 5,000 messages a second and a burst of 10,000: the whole burst is refilled after two seconds', async () => {
  const answer = await batch(publishable());
  expect(answer.headers.get('ratelimit-policy')).toBe('"messages";q=10000;w=2');
});

it('RateLimit and RateLimit-Policy a burst of 10,000 messages at once is accepted by default', async () => {
  const full = { 'x-service-publishable-key': client.otherPublishableKey };
  for (let sent = 0; sent < 10_000; sent += 1000) {
    const batches = Array.from({ length: 10 }, () =>
      client.post({ messages: Array.from({ length: 100 }, () => track()) }, full),
    );
    for (const answer of await Promise.all(batches)) expectAccepted(answer, 100);
  }
});
