// Contract, ingest, row "Rate limit".

import { until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Client, expectEnvelope, expectRateLimitFields, track } from './client.ts';
import { type ConformanceGateway, START_MAX_MS, startGateway } from './gateway.ts';

let client: Client & ConformanceGateway;
beforeAll(async () => {
  client = await startGateway({ RATE_LIMIT_MESSAGES_PER_S: '20', RATE_LIMIT_BURST: '100' });
}, START_MAX_MS);
afterAll(() => client.close());

/** A batch uses the whole burst, which is refilled within five seconds. */
const fill = (extra = {}) => client.send(...Array.from({ length: 100 }, () => track(extra)));
const refusedFill = (extra = {}) =>
  until('the bucket is empty', async () => {
    const answer = await fill(extra);
    return answer.status === 429 ? answer : null;
  });
const refilled = () => until('the bucket has refilled', async () => (await client.send(track())).status === 200);

it('the rate limit: counts messages per publishable key: 429 envelope with Retry-After while the bucket is empty', async () => {
  const answer = await refusedFill();
  expectEnvelope(answer, 429, 'TOO_MANY_REQUESTS_ERROR');
  expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expectRateLimitFields(answer);
});

it('the rate limit: another publishable key has its own bucket', async () => {
  await refusedFill();
  const answer = await client.post(
    { messages: [track()] },
    { 'x-service-publishable-key': client.otherPublishableKey },
  );
  expect(answer.status).toBe(200);
});

it('the rate limit: the bucket refills', async () => {
  await refusedFill();
  await refilled();
});

it('the rate limit: rejected messages are charged too', async () => {
  await refilled();
  expectEnvelope(await refusedFill({ surface: 'phone' }), 429, 'TOO_MANY_REQUESTS_ERROR');
});

it.each<[string, number, () => Promise<Answer>]>([
  ['accepted', 200, () => client.send(track())],
  ['all rejected', 400, () => client.send(track({ surface: 'phone' }))],
  ['unreadable', 400, () => client.post('{')],
])(
  'the rate limit: RateLimit and RateLimit-Policy are on the answer of a batch that is %s',
  async (_, status, send) => {
    await refilled();
    const answer = await until('the batch is not refused', async () => {
      const got = await send();
      return got.status === 429 ? null : got;
    });
    expect(answer.status).toBe(status);
    expectRateLimitFields(answer);
  },
);
