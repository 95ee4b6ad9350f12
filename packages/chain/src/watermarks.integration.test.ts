import { randomUUID } from 'node:crypto';
import { openTestRedis, testRedis } from '@playline/testkit';
import { afterAll, describe, expect, it } from 'vitest';
import { openRedisWatermarks } from './redis/index.ts';
import { openMemoryWatermarks } from './test/memory/index.ts';
import { toHorizon, type Watermarks } from './watermarks.ts';

const namespace = `test-${randomUUID()}:`;
const opened: Watermarks[] = [];

async function openInRedis(): Promise<Watermarks> {
  const watermarks = await openRedisWatermarks({ ...testRedis(), namespace });
  opened.push(watermarks);
  return watermarks;
}

afterAll(async () => {
  for (const watermarks of opened) await watermarks.close();
  const { client: redis, close } = openTestRedis();
  await redis.del(`${namespace}chain:watermark`);
  close();
});

describe.each([
  ['memory', async () => openMemoryWatermarks()],
  ['Redis', openInRedis],
])('watermarks in %s', (_where, open) => {
  it('a watermark is null until it is published, and is then exact to the microsecond', async () => {
    const watermarks = await open();
    expect(await watermarks.read(1)).toBeNull();
    await watermarks.publish(1, Number.MAX_SAFE_INTEGER - 1);
    expect(await watermarks.read(1)).toBe(Number.MAX_SAFE_INTEGER - 1);
    await watermarks.publish(1, Number.MAX_SAFE_INTEGER);
    expect(await watermarks.read(1)).toBe(Number.MAX_SAFE_INTEGER);
    expect(await watermarks.ready()).toBe(true);
  });

  it('a watermark never decreases, and each partition has its own watermark', async () => {
    const watermarks = await open();
    await Promise.all([5_000_000, 9_000_000, 10_000_000, 7].map((us) => watermarks.publish(2, us)));
    expect(await watermarks.read(2)).toBe(10_000_000);
    await watermarks.publish(3, 1);
    expect([await watermarks.read(2), await watermarks.read(3)]).toEqual([10_000_000, 1]);
  });
});

it('the horizon is one microsecond past the watermark', () => {
  expect(toHorizon(10)).toBe(11);
});

it('reading and publishing a watermark fail while Redis is unavailable', async () => {
  const watermarks = await openRedisWatermarks({ url: 'redis://127.0.0.1:1', namespace });
  opened.push(watermarks);
  expect(await watermarks.ready()).toBe(false);
  await expect(watermarks.read(1)).rejects.toThrow();
  await expect(watermarks.publish(1, 1)).rejects.toThrow();
});

it('reading a watermark fails while the stored value is invalid', async () => {
  const watermarks = await openInRedis();
  const { client: redis, close } = openTestRedis();
  await redis.hset(`${namespace}chain:watermark`, '6', 'junk');
  await expect(watermarks.read(6)).rejects.toThrow('not a whole number');
  await redis.hset(`${namespace}chain:watermark`, '6', '5');
  expect(await watermarks.read(6)).toBe(5);
  close();
});

it('publishing an invalid watermark fails', async () => {
  const watermarks = await openInRedis();
  for (const us of [-1, 1.5, Number.NaN, 2 ** 53]) await expect(watermarks.publish(4, us)).rejects.toThrow(RangeError);
});
