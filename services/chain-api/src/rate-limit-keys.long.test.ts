import {
  createRateLimitKey,
  createRateLimitKeyText,
  refreshRateLimitKey,
  revokeRateLimitKey,
} from '@playline/access-keys';
import { openStoreProxy, sendUntilRefused, until } from '@playline/testkit';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { CHAIN } from './test/open-chain-api.ts';
import { type ChainApiProcess, openProcess } from './test/open-process.ts';
import { type ChainStores, openChainStores } from './test/open-stores.ts';
import { addressOf, tokenRow } from './test/rows.ts';

const TOKEN = `/${CHAIN.name}/tokens/${addressOf(2)}`;
const plan = { partner: 'Acme', calls: 1_000_000, windowS: 60, expiresAt: null };
const UNKNOWN_KEY = createRateLimitKeyText('svcapik');

let stores: ChainStores;
beforeAll(async () => {
  stores = await openChainStores();
  await stores.putTokens(tokenRow());
});
afterAll(() => stores.close());

async function open(environment: Record<string, string> = {}): Promise<ChainApiProcess> {
  const api = await openProcess({ ...stores.environment, ...environment });
  onTestFinished(async () => void (await api.close()));
  await until('the chain API is ready', async () => (await api.notReady()).length === 0);
  return api;
}

const statusOf = async ({ get }: ChainApiProcess, key: string, headers: Record<string, string> = {}) =>
  (await get(TOKEN, { 'x-api-key': key, ...headers })).status;

it.each(['refresh', 'revoke'] as const)(
  'all processes reject a rate limit key within a second of the command "%s"',
  async (command) => {
    const apis = [await open(), await open()];
    const { key, record } = await createRateLimitKey(stores.rateLimitKeys, plan);
    const load = apis.map((api) => sendUntilRefused(() => statusOf(api, key), 403));
    await until('both processes accept the key', () => load.every(({ acceptedAt }) => acceptedAt() > 0));
    const successor =
      command === 'refresh'
        ? await refreshRateLimitKey(stores.rateLimitKeys, { keyId: record.keyId })
        : await revokeRateLimitKey(stores.rateLimitKeys, record.keyId).then(() => null);
    const rejectedAt = performance.now();
    await Promise.all(load.map(({ refused }) => refused));
    for (const { acceptedAt } of load) expect(acceptedAt() - rejectedAt).toBeLessThan(1000);
    if (successor !== null) for (const api of apis) expect(await statusOf(api, successor.key)).toBe(200);
  },
);

it('a rate limit key is valid as soon as it is created and returns 403 after it expires', async () => {
  const api = await open();
  expect(await statusOf(api, UNKNOWN_KEY)).toBe(403);
  const { key } = await createRateLimitKey(stores.rateLimitKeys, plan);
  expect(await statusOf(api, key)).toBe(200);
  const shortLived = await createRateLimitKey(stores.rateLimitKeys, { ...plan, expiresAt: Date.now() + 1500 });
  expect(await statusOf(api, shortLived.key)).toBe(200);
  await until('the key has expired', async () => (await statusOf(api, shortLived.key)) === 403);
  expect(Date.now()).toBeGreaterThanOrEqual(shortLived.record.expiresAt ?? 0);
});

it('the chain API returns 500 for every rate limit key while Redis has lost the keys, but serves calls without a key', async () => {
  const { key } = await createRateLimitKey(stores.rateLimitKeys, plan);
  const redis = new Redis(stores.redisUrl);
  onTestFinished(() => redis.disconnect());
  await redis.del(await redis.keys('access:*'));
  const api = await open();
  for (const text of [key, UNKNOWN_KEY]) expect(await statusOf(api, text)).toBe(500);
  expect(await statusOf(api, 'hello')).toBe(403);
  expect((await api.get(TOKEN)).status).toBe(200);
  const { degraded } = (await (await fetch(`${api.adminUrl}/readyz`)).json()) as { degraded?: unknown };
  expect(degraded).toEqual(['rateLimitKeys', 'minting']);
  await stores.syncRateLimitKeys();
  expect([await statusOf(api, key), await statusOf(api, UNKNOWN_KEY)]).toEqual([200, 403]);
});

it.each(['cut', 'hung'] as const)(
  'the chain API accepts known rate limit keys and returns 500 for unknown keys when the connection to Redis is in mode "%s"',
  async (mode) => {
    const url = new URL(stores.redisUrl);
    const proxy = await openStoreProxy(Number(url.port));
    onTestFinished(() => proxy.close());
    url.port = String(proxy.port);
    const api = await open({ REDIS_URL: url.href });
    const { key } = await createRateLimitKey(stores.rateLimitKeys, plan);
    expect(await statusOf(api, key)).toBe(200);
    proxy.mode = mode;
    expect(await statusOf(api, UNKNOWN_KEY)).toBe(500);
    expect(await statusOf(api, key)).toBe(200);
    await revokeRateLimitKey(stores.rateLimitKeys, (await latest()).keyId);
    proxy.mode = 'open';
    await until('the key is revoked', async () => (await statusOf(api, key)) === 403);
  },
);

async function latest() {
  const records = await stores.rateLimitKeys.store.readAll();
  return records.toSorted((a, b) => b.createdAt - a.createdAt)[0]!;
}
