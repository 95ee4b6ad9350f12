// Contract, the row "Rate limit" in "Rules of a batch". endpoint.test.ts tests the rate limit headers.
import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Client,
  type ClientResponse,
  CONSENT_PATH,
  expectEnvelope,
  expectRateLimitFields,
  track,
} from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  const consents = { RATE_LIMIT_CONSENTS_PER_S: '1', RATE_LIMIT_CONSENTS_BURST: '3' };
  client = await startGateway({ RATE_LIMIT_MESSAGES_PER_S: '20', RATE_LIMIT_BURST: '100', ...consents });
}, START_MAX_MS);
afterAll(() => client.close());

const HEADER = 'x-service-publishable-key';
const createTracks = (count: number, extra = {}) => Array.from({ length: count }, () => track(extra));

/** Sends batches of the burst size until one is refused. The bucket refills within five seconds. */
const exceedLimit = (extra = {}) =>
  until('the bucket is empty', async () => {
    const response = await client.send(...createTracks(100, extra));
    return response.status === 429 ? response : null;
  });
const waitForRefill = () => until('the bucket has refilled', async () => (await client.send(track())).status === 200);

function expectLimited(response: ClientResponse): void {
  expectEnvelope(response, 429, 'TOO_MANY_REQUESTS_ERROR');
  expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expectRateLimitFields(response);
}

it('the rate limit counts messages per publishable key and returns 429 with Retry-After until the bucket refills', async () => {
  expectLimited(await exceedLimit());
  const other = await client.post({ messages: [track()] }, { [HEADER]: client.otherPublishableKey });
  expect(other.status).toBe(200);
  await waitForRefill();
});

it('rejected messages count towards the rate limit', async () => {
  await waitForRefill();
  expectLimited(await exceedLimit({ surface: 'phone' }));
});

it('too many consent calls return 429 with Retry-After', async () => {
  // More concurrent calls than the burst and the refill allow.
  const calls = Array.from({ length: 60 }, () =>
    client.request(`${CONSENT_PATH}?anonymousId=a`, { headers: { [HEADER]: client.publishableKey } }),
  );
  const refused = (await Promise.all(calls)).filter(({ status }) => status !== 200);
  expect(refused.length).toBeGreaterThan(0);
  for (const response of refused) expectLimited(response);
});
