// Contract, "Rules of a batch", rows on the rate limit.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Answer,
  type Client,
  CONSENT_PATH,
  DATA_PATH,
  expectAccepted,
  expectEnvelope,
  expectRateLimitFields,
  track,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

/** With small limits. */
let client: Client & ConformanceGateway;
/** With the default limits. */
let usual: Client & ConformanceGateway;
beforeAll(async () => {
  const consents = { RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '3' };
  [client, usual] = await Promise.all([
    startGateway({ RATE_LIMIT_MESSAGES_PER_S: '20', RATE_LIMIT_BURST: '100', ...consents }),
    startGateway(),
  ]);
}, START_MAX_MS);
afterAll(() => Promise.all([client.close(), usual.close()]));

const HEADER = 'x-service-publishable-key';
const many = (count: number, extra = {}) => Array.from({ length: count }, () => track(extra));

/** A batch uses the whole burst, which is refilled within five seconds. */
const refusedFill = (extra = {}) =>
  until('the bucket is empty', async () => {
    const answer = await client.send(...many(100, extra));
    return answer.status === 429 ? answer : null;
  });
const refilled = () => until('the bucket has refilled', async () => (await client.send(track())).status === 200);

function expectLimited(answer: Answer): void {
  expectEnvelope(answer, 429, 'TOO_MANY_REQUESTS_ERROR');
  expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expectRateLimitFields(answer);
}

it('messages are counted per publishable key: 429 envelope with Retry-After until the bucket refills', async () => {
  expectLimited(await refusedFill());
  const other = await client.post({ messages: [track()] }, { [HEADER]: client.otherPublishableKey });
  expect(other.status).toBe(200);
  await refilled();
});

it('rejected messages are charged too', async () => {
  await refilled();
  expectLimited(await refusedFill({ surface: 'phone' }));
});

it('too many consent calls get a 429 envelope with Retry-After', async () => {
  // More concurrent calls than the bucket holds and the rate refills.
  const calls = Array.from({ length: 60 }, () =>
    client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: { [HEADER]: client.publishableKey } }),
  );
  const refused = (await Promise.all(calls)).filter(({ status }) => status !== 200);
  expect(refused.length).toBeGreaterThan(0);
  for (const answer of refused) expectLimited(answer);
});

const consent = (query: string, headers: Record<string, string>) => usual.request(CONSENT_PATH + query, { headers });
const erase = (headers: Record<string, string>) =>
  usual.request(`${DATA_PATH}?userId=u`, { method: 'DELETE', headers });
const ANSWERS: [string, number, () => Promise<Answer>][] = [
  ['a batch', 200, () => usual.send(track())],
  ['a batch that is all rejected', 400, () => usual.send(track({ surface: 'phone' }))],
  ['a batch that is unreadable', 400, () => usual.post('{')],
  ['a batch with an unknown key', 401, () => usual.post('{', { [HEADER]: usual.unknownKey })],
  ['a batch in an unknown encoding', 400, () => usual.post('{', { 'content-encoding': 'lzma' })],
  ['a consent', 200, () => consent('?anonymousId=a', { [HEADER]: usual.publishableKey })],
  ['a consent without a key', 400, () => consent('?anonymousId=a', {})],
  ['an erasure', 202, () => erase({ 'x-service-api-key': usual.secretKey })],
  ['an erasure with a wrong key', 401, () => erase({ 'x-service-api-key': 'hello' })],
];

it.each(ANSWERS)('RateLimit and RateLimit-Policy are on the answer to %s: %i', async (_, status, send) => {
  const answer = await send();
  expect(answer.status).toBe(status);
  expectRateLimitFields(answer);
});

it('a burst of 10,000 messages is accepted by default, and the policy states that it refills in two seconds', async () => {
  const headers = { [HEADER]: usual.otherPublishableKey };
  for (let sent = 0; sent < 10_000; sent += 1000) {
    const batches = Array.from({ length: 10 }, () => usual.post({ messages: many(100) }, headers));
    for (const answer of await Promise.all(batches)) {
      expectAccepted(answer, 100);
      expect(answer.headers.get('ratelimit-policy')).toBe('"messages";q=10000;w=2');
    }
  }
});
