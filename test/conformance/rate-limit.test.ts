// Contract, "Rules of a batch", rows on the rate limit. Its header fields: endpoint.test.ts.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, CONSENT_PATH, expectEnvelope, expectRateLimitFields, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  const consents = { RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '3' };
  client = await startGateway({ RATE_LIMIT_MESSAGES_PER_S: '20', RATE_LIMIT_BURST: '100', ...consents });
}, START_MAX_MS);
afterAll(() => client.close());

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
