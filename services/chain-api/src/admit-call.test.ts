import { createUsageCounter } from '@playline/access-keys';
import type { Exchange } from '@playline/http';
import { createWindowLimiter } from '@playline/rate-limit';
import { expect, it } from 'vitest';
import { createAdmitCall, type RateLimitKeys } from './admit-call.ts';

const PLANS: RateLimitKeys = { find: async (key) => (key === 'good' ? { keyId: 'id', calls: 5, windowS: 60 } : null) };

function setUp(keys: RateLimitKeys = PLANS) {
  const refused: string[] = [];
  const usage = createUsageCounter({ wallClockMs: () => 0 });
  const admit = createAdmitCall({
    keys,
    limiter: createWindowLimiter({ now: () => 0 }),
    policy: { name: 'calls', calls: 2, windowS: 60 },
    addressOf: (request) => (request as unknown as { address: string }).address,
    onRefused: (limit) => refused.push(limit),
    usage,
  });
  /** Returns the rate limit headers of a call, or its error code. */
  const call = async (key?: string, address = '192.0.2.1'): Promise<string> => {
    const exchange = { traceId: 'trace', request: { address, headers: { 'x-api-key': key } } } as unknown as Exchange;
    try {
      await admit(exchange);
      return exchange.lateHeaders().join(' ');
    } catch (fault) {
      return (fault as { code?: string }).code ?? String(fault);
    }
  };
  return { call, refused, usage };
}

it('a call without a key counts against its client address', async () => {
  const { call, refused } = setUp();
  expect(await call()).toBe('ratelimit-policy "calls";q=2;w=60 ratelimit "calls";r=1;t=60');
  await call();
  expect(await call()).toBe('TOO_MANY_REQUESTS_ERROR');
  expect(refused).toEqual(['calls']);
  expect(await call(undefined, '192.0.2.2')).toContain('r=1');
});

it('a call with a key counts against the plan of the key, regardless of the client address', async () => {
  const { call } = setUp();
  for (let calls = 0; calls < 3; calls++) await call();
  expect(await call('good')).toBe('ratelimit-policy "calls";q=5;w=60 ratelimit "calls";r=4;t=60');
  expect(await call('good', '192.0.2.2')).toContain('r=3');
});

it('key usage counts only calls with a valid key and records the last refusal', async () => {
  const { call, usage } = setUp();
  for (let calls = 0; calls < 7; calls++) await call('good');
  await call('bad');
  await call();
  const lastRefusal = { at: 0, reason: 'TOO_MANY_REQUESTS_ERROR', traceId: 'trace' };
  expect(usage.take()).toMatchObject({ keys: [{ keyId: 'id', uses: 7, refusals: 2, lastRefusal }], environments: [] });
});

it('a call with an invalid key is rejected and counts against its client address', async () => {
  const { call } = setUp();
  expect(await call('bad')).toBe('AUTHENTICATION_ERROR');
  expect(await call('')).toBe('AUTHENTICATION_ERROR');
  expect(await call('bad')).toBe('TOO_MANY_REQUESTS_ERROR');
  expect(await call()).toBe('TOO_MANY_REQUESTS_ERROR');
});

it('a call fails with the original error if its key cannot be checked', async () => {
  const { call } = setUp({ find: () => Promise.reject(new Error('unavailable')) });
  expect(await call('good')).toBe('Error: unavailable');
});

it('a call counts against the current plan after the plan of its key changes', async () => {
  let calls = 1;
  const { call } = setUp({ find: async () => ({ keyId: 'id', calls, windowS: 60 }) });
  await call('good');
  expect(await call('good')).toBe('TOO_MANY_REQUESTS_ERROR');
  calls = 3;
  expect(await call('good')).toBe('ratelimit-policy "calls";q=3;w=60 ratelimit "calls";r=2;t=60');
});
