// Contract, error envelope, chain reads and keys: who may call chain reads.
import {
  createRateLimitKey,
  createRateLimitKeyText,
  refreshRateLimitKey,
  revokeRateLimitKey,
} from '@playline/access-keys';
import { openWire, testStores, until, type Wire } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addressOf, tokenRow } from '../../services/chain-api/src/test/rows.ts';
import { type ConformanceChainApi, expectChainFault, startChainApi } from './chain-api.ts';
import { START_MAX_MS } from './gateway.ts';

const CALLS = 90;

let wire: Wire;
let api: ConformanceChainApi;
beforeAll(async () => {
  const clickhouse = new URL(testStores().clickhouse.url);
  wire = await openWire(Number(clickhouse.port));
  clickhouse.port = String(wire.port);
  api = await startChainApi({ CLICKHOUSE_URL: clickhouse.href, RATE_LIMIT_CALLS: String(CALLS), TRUSTED_PROXIES: '1' });
  await api.putTokens(tokenRow());
}, START_MAX_MS);
afterAll(async () => {
  await api.close();
  await wire.close();
});

const TOKEN = `/tokens/${addressOf(2)}`;
const HISTORY = '/activity-history';

it.each([
  [400, 'VALIDATION_ERROR', '/tokens/x'],
  [400, 'VALIDATION_ERROR', `${HISTORY}?page_size=0`],
  [404, 'RESOURCE_NOT_FOUND', `/tokens/${addressOf(9)}`],
  [404, 'RESOURCE_NOT_FOUND', '/collections'],
])('an answer is %i for %s, in the envelope: %s', async (status, code, path) => {
  await expectChainFault(await api.get(path), status, code);
});

it.each([TOKEN, HISTORY])(
  'an answer is 500 INTERNAL_SERVER_ERROR while the store is away, and the answer has no internal text: %s',
  async (path) => {
    wire.mode = 'cut';
    const answer = await api.get(path);
    const text = await answer.clone().text();
    expect(text).not.toMatch(/clickhouse|127\.0\.0\.1:\d+\/?\?|ECONN/i);
    await expectChainFault(answer, 500, 'INTERNAL_SERVER_ERROR');
    wire.mode = 'open';
    expect((await api.get(path)).status).toBe(200);
  },
);

it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
  'an answer is 404 RESOURCE_NOT_FOUND for the method %s',
  async (method) => {
    for (const path of [TOKEN, HISTORY]) {
      const answer = await fetch(`${api.url}/v1/chains/demo-chain${path}`, { method });
      await expectChainFault(answer, 404, 'RESOURCE_NOT_FOUND');
    }
  },
);

it('an answer repeats the trace id of a valid traceparent', async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const answer = await api.get('/tokens/x', { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
  expect(await answer.json()).toMatchObject({ trace_id: traceId });
});

it.each([TOKEN, HISTORY])('keys of a project are not needed, and tolerated when sent: %s', async (path) => {
  const headers = { 'x-service-api-key': 'hello', 'x-service-publishable-key': 'hello', authorization: 'hello' };
  expect((await api.get(path)).status).toBe(200);
  expect((await api.get(path, headers)).status).toBe(200);
});

it.each([
  ['malformed', 'hello'],
  ['empty', ''],
  ['a secret key', `sk_svcapik-${'a'.repeat(36)}`],
  ['of another form', '0123456789abcdef0123456789abcdef'],
  ['unknown', createRateLimitKeyText('svcapik')],
])('an x-api-key that is %s: 403 AUTHENTICATION_ERROR', async (_, key) => {
  for (const path of [TOKEN, HISTORY])
    await expectChainFault(await api.get(path, { 'x-api-key': key }), 403, 'AUTHENTICATION_ERROR');
});

const plan = { partner: 'Acme', calls: 10_000, windowS: 60, expiresAt: null };
const statusOf = async (key: string) => (await api.get(TOKEN, { 'x-api-key': key })).status;

it('rate limit keys may make as many calls as their plan allows, from any address: the next one is 429', async () => {
  const { key } = await createRateLimitKey(api.rateLimitKeys, { ...plan, calls: 3 });
  const from = (address: string) =>
    api.get(TOKEN, { 'x-api-key': key, 'x-service-api-key': 'sent together', 'x-forwarded-for': address });
  for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) expect((await from(address)).status).toBe(200);
  const answer = await from('192.0.2.4');
  expect(answer.headers.get('ratelimit-policy')).toBe('"calls";q=3;w=60');
  await expectChainFault(answer, 429, 'TOO_MANY_REQUESTS_ERROR');
});

it('rate limit keys that were refreshed away, revoked or have expired: 403 AUTHENTICATION_ERROR', async () => {
  const { key, record } = await createRateLimitKey(api.rateLimitKeys, plan);
  expect(await statusOf(key)).toBe(200);
  const next = await refreshRateLimitKey(api.rateLimitKeys, record);
  await until('the old text has ended', async () => (await statusOf(key)) === 403);
  expect(await statusOf(next.key)).toBe(200);
  await revokeRateLimitKey(api.rateLimitKeys, record.keyId);
  await until('the key has ended', async () => (await statusOf(next.key)) === 403);
  const expired = await createRateLimitKey(api.rateLimitKeys, { ...plan, expiresAt: Date.now() });
  await expectChainFault(await api.get(TOKEN, { 'x-api-key': expired.key }), 403, 'AUTHENTICATION_ERROR');
});

// The default, 1,500 calls, is a test of the settings.
it('the limit without a key is a number of calls in 5 minutes for a client address: its next one is 429 with Retry-After, and other addresses can still call', async () => {
  const from = (address: string, path = TOKEN) => api.get(path, { 'x-forwarded-for': address });
  const statuses = new Set<number>();
  const answers = await Promise.all(Array.from({ length: CALLS }, () => from('192.0.2.77')));
  for (const { status } of answers) statuses.add(status);
  expect(statuses).toEqual(new Set([200]));
  for (const path of [TOKEN, HISTORY]) {
    const answer = await from('192.0.2.77', path);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(240);
    expect(answer.headers.get('ratelimit-policy')).toBe(`"calls";q=${CALLS};w=300`);
    await expectChainFault(answer, 429, 'TOO_MANY_REQUESTS_ERROR');
  }
  expect((await from('192.0.2.78')).status).toBe(200);
});
