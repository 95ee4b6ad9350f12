import { createHttpApp, type HttpServer, openHttpServer, type Route } from '@playline/http';
import { openSharedLimiter } from '@playline/rate-limit';
import { createMemoryBalances } from '@playline/rate-limit/memory';
import { createMetrics, parseConfig } from '@playline/runtime';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';
import { createRateLimits } from './index.ts';
import { rateLimitSettings } from './settings.ts';

let server: HttpServer | undefined;
afterEach(() => server?.close());

/** Opens a server with a limited route that counts its calls. */
async function open() {
  const settings = parseConfig(z.object(rateLimitSettings), {
    RATE_LIMIT_CONSENTS_PER_S: '1',
    RATE_LIMIT_CONSENTS_BURST: '3',
    TRUSTED_PROXIES: '1',
  });
  const limiter = openSharedLimiter({ balances: createMemoryBalances() });
  const limits = createRateLimits({
    ratesOf: (_, setting) => setting,
    settings,
    limiter,
    metrics: createMetrics('test'),
    onInvalidKey: () => {},
  });
  const calls = { count: 0 };
  const route: Route = {
    method: 'GET',
    path: '/consent',
    cors: true,
    handle: (exchange) => {
      calls.count++;
      exchange.answer(200, '{}');
    },
  };
  const app = createHttpApp({ routes: [limits.consents(route)], publishableKeyHeader: 'x-key', link: (code) => code });
  server = await openHttpServer({ app, host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${server.port}/consent`;
  const get = (address: string) => fetch(url, { headers: { 'x-forwarded-for': address } });
  return { get, calls };
}

it('the consent limit returns 429 to an address with too many calls, and does not affect other addresses', async () => {
  const { get, calls } = await open();
  for (const remaining of [2, 1, 0]) {
    const response = await get('192.0.2.1');
    expect(response.status).toBe(200);
    expect(response.headers.get('ratelimit-policy')).toBe('"consents";q=3;w=3');
    expect(response.headers.get('ratelimit')).toMatch(new RegExp(`^"consents";r=${remaining};t=[123]$`));
  }
  const refused = await get('192.0.2.1');
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(refused.headers.get('ratelimit')).toBe('"consents";r=0;t=1');
  expect(await refused.json()).toMatchObject({ code: 'TOO_MANY_REQUESTS_ERROR', details: null });
  expect(calls.count).toBe(3);
  expect((await get('192.0.2.2')).status).toBe(200);
});
