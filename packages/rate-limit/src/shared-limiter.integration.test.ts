import { randomBytes } from 'node:crypto';
import { openStoreProxy, testStores, until } from '@playline/testkit';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, afterEach, expect, it } from 'vitest';
import { openSharedLimiter } from './index.ts';
import { openRedisBalances, type RedisBalances } from './redis/index.ts';

const url = testStores().redis;
const namespace = `test-${randomBytes(4).toString('hex')}:`;

const opened: { close(): Promise<void> }[] = [];
function closeLater<T extends { close(): Promise<void> }>(resource: T): T {
  opened.push(resource);
  return resource;
}
afterEach(async () => {
  for (const resource of opened.splice(0).reverse()) await resource.close();
});
afterAll(async () => {
  const redis = new Redis(url);
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
});

async function openConnected(address = url): Promise<RedisBalances> {
  const balances = closeLater(openRedisBalances({ url: address, namespace }));
  await until('Redis responds', async () => (await balances.charge([])).length === 0);
  return balances;
}

it('each bucket in Redis records its charge with microsecond precision', async () => {
  const balances = await openConnected();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 10 ** 9 }), { minLength: 1, maxLength: 20 }), async (us) => {
      const tag = randomBytes(6).toString('hex');
      // Large enough that no bucket refills completely during the test.
      const charges = us.map((one, position) => ({ id: `${tag}-${position}`, costMs: 10 ** 7 + one / 1000 }));
      const first = await balances.charge(charges);
      const inUs = (ms: number) => Math.round(ms * 1000);
      expect(first.map(inUs)).toEqual(charges.map(({ costMs }) => inUs(costMs)));
      const second = await balances.charge(charges.map(({ id }) => ({ id, costMs: 0 })));
      // A script reads the clock once, so the elapsed time is the same for all buckets.
      const elapsed = first.map((one, position) => inUs(one) - inUs(second[position] ?? 0));
      expect(new Set(elapsed).size).toBe(1);
    }),
    { numRuns: 20 },
  );
});

it("setting back Redis's clock does not delay callers", async () => {
  const balances = await openConnected();
  const redis = new Redis(url);
  await balances.charge([{ id: 'set-back', costMs: 5_000 }]);
  // Simulate a value that was written while Redis's clock was an hour ahead.
  const [fullAt = '', ...rest] = ((await redis.get(`${namespace}rate:set-back`)) ?? '').split('.');
  const ahead = [String(BigInt(fullAt) + 3_600_000_000n), ...rest].join('.');
  await redis.set(`${namespace}rate:set-back`, ahead, 'KEEPTTL');
  redis.disconnect();
  const [backlogMs] = await balances.charge([{ id: 'set-back', costMs: 1_000 }]);
  expect(backlogMs).toBeLessThanOrEqual(6_000);
  expect(backlogMs).toBeGreaterThan(0);
});

it('full buckets are deleted from Redis, and reading a bucket does not create a key', async () => {
  const balances = await openConnected();
  const redis = new Redis(url);
  await balances.charge([{ id: 'brief', costMs: 30 }]);
  expect(await redis.pttl(`${namespace}rate:brief`)).toBeLessThanOrEqual(30);
  await until('the bucket is deleted', async () => (await redis.exists(`${namespace}rate:brief`)) === 0);
  expect(await balances.charge([{ id: 'brief', costMs: 0 }])).toEqual([0]);
  expect(await redis.exists(`${namespace}rate:brief`)).toBe(0);
  redis.disconnect();
});

const policy = { name: 'messages', perSecond: 1000, burst: 2000 };

it.each(['cut', 'hung'] as const)(
  'a process applies the limit locally during a Redis outage (%s), and shares the limit afterwards',
  async (mode) => {
    const address = new URL(url);
    const proxy = closeLater(await openStoreProxy(Number(address.port)));
    address.port = String(proxy.port);
    const limiter = closeLater(openSharedLimiter({ balances: await openConnected(address.href) }));
    const bucket = limiter.bucket(mode, policy);
    proxy.mode = mode;
    await until('the limit is local', async () => {
      if ((await bucket.admit()).allowed) bucket.charge(1);
      return !limiter.shared;
    });
    bucket.charge(5000);
    expect(await bucket.admit()).toMatchObject({ allowed: false, remaining: 0 });
    proxy.mode = 'open';
    await until(
      'the limit is shared',
      () => {
        bucket.charge(0.001);
        return limiter.shared;
      },
      1000,
    );
  },
);

it('a limiter starts immediately even if Redis is unavailable', async () => {
  const balances = closeLater(openRedisBalances({ url: 'redis://127.0.0.1:1' }));
  const limiter = closeLater(openSharedLimiter({ balances }));
  const bucket = limiter.bucket('key', policy);
  expect(bucket.admit()).toMatchObject({ allowed: true });
  bucket.charge(1);
  await until('the limit is local', () => !limiter.shared);
  expect(bucket.admit()).toMatchObject({ allowed: true });
});
