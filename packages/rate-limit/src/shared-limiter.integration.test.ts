import { randomBytes } from 'node:crypto';
import { openWire, testStores, until } from '@playline/testkit';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, afterEach, expect, it } from 'vitest';
import { openSharedLimiter } from './index.ts';
import { openRedisBalances, type RedisBalances } from './redis/index.ts';

const url = testStores().redis;
const namespace = `test-${randomBytes(4).toString('hex')}:`;

const opened: { close(): Promise<void> }[] = [];
function use<T extends { close(): Promise<void> }>(part: T): T {
  opened.push(part);
  return part;
}
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});
afterAll(async () => {
  const redis = new Redis(url);
  const keys = await redis.keys(`${namespace}*`);
  if (keys.length > 0) await redis.del(keys);
  redis.disconnect();
});

async function openConnected(address = url): Promise<RedisBalances> {
  const balances = use(openRedisBalances({ url: address, namespace }));
  await until('Redis responds', async () => (await balances.charge([])).length === 0);
  return balances;
}

it('each bucket in Redis keeps its own charge to the microsecond', async () => {
  const balances = await openConnected();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 10 ** 9 }), { minLength: 1, maxLength: 20 }), async (us) => {
      const tag = randomBytes(6).toString('hex');
      // Far in the future, so that the duration of the test is negligible.
      const charges = us.map((one, position) => ({ id: `${tag}-${position}`, costMs: 10 ** 7 + one / 1000 }));
      const first = await balances.charge(charges);
      const inUs = (ms: number) => Math.round(ms * 1000);
      expect(first.map(inUs)).toEqual(charges.map(({ costMs }) => inUs(costMs)));
      const requested = await balances.charge(charges.map(({ id }) => ({ id, costMs: 0 })));
      // A script runs at a single time, so the same time has passed for all buckets.
      const passed = first.map((one, position) => inUs(one) - inUs(requested[position] ?? 0));
      expect(new Set(passed).size).toBe(1);
    }),
    { numRuns: 20 },
  );
});

it('buckets in Redis delay no caller after the clock of Redis was set back', async () => {
  const balances = await openConnected();
  const redis = new Redis(url);
  await balances.charge([{ id: 'set-back', costMs: 5_000 }]);
  // The value that Redis would have written with its clock an hour ahead.
  const [fullAt = '', ...rest] = ((await redis.get(`${namespace}rate:set-back`)) ?? '').split('.');
  const ahead = [String(BigInt(fullAt) + 3_600_000_000n), ...rest].join('.');
  await redis.set(`${namespace}rate:set-back`, ahead, 'KEEPTTL');
  redis.disconnect();
  const [backlogMs] = await balances.charge([{ id: 'set-back', costMs: 1_000 }]);
  expect(backlogMs).toBeLessThanOrEqual(6_000);
  expect(backlogMs).toBeGreaterThan(0);
});

it('full buckets are deleted from Redis, and a read writes nothing', async () => {
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

it.each(['cut', 'hangs'] as const)(
  'while Redis is unavailable (%s) the process limits alone, and the limit is shared again within a second',
  async (how) => {
    const address = new URL(url);
    const wire = use(await openWire(Number(address.port)));
    address.port = String(wire.port);
    const limiter = use(openSharedLimiter({ balances: await openConnected(address.href) }));
    const bucket = limiter.bucket(how, policy);
    wire.mode = how;
    await until('the limit is local', async () => {
      if ((await bucket.admit()).allowed) bucket.charge(1);
      return !limiter.shared;
    });
    bucket.charge(5000);
    expect(await bucket.admit()).toMatchObject({ allowed: false, remaining: 0 });
    wire.mode = 'open';
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

it('a limiter starts without waiting for an unavailable Redis', async () => {
  const limiter = use(openSharedLimiter({ balances: use(openRedisBalances({ url: 'redis://127.0.0.1:1' })) }));
  const bucket = limiter.bucket('key', policy);
  expect(bucket.admit()).toMatchObject({ allowed: true });
  bucket.charge(1);
  await until('the limit is local', () => !limiter.shared);
  expect(bucket.admit()).toMatchObject({ allowed: true });
});
