import { openMemoryWatermarks } from '@playline/chain/memory';
import { hang } from '@playline/testkit/hang';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createHorizons } from './horizons.ts';

/** Watermarks in a store that can be away, hang or be emptied. */
function setUp() {
  const stored = openMemoryWatermarks();
  const world = { mode: 'open' as 'open' | 'away' | 'silent' | 'empty', faults: 0, stored };
  const read = (partition: number) => {
    if (world.mode === 'away') return Promise.reject(new Error('ECONNREFUSED'));
    if (world.mode === 'silent') return hang();
    return world.mode === 'empty' ? Promise.resolve(null) : stored.read(partition);
  };
  const horizons = createHorizons({ watermarks: { read }, onFault: () => world.faults++ });
  return { world, horizons };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

it('the horizon is the first time after the watermark of its partition, read for each page', async () => {
  const { world, horizons } = setUp();
  await world.stored.publish(1, 1000);
  await world.stored.publish(2, 9000);
  expect(await horizons.of(1)).toBe(1001);
  await world.stored.publish(1, 2000);
  expect(await horizons.of(1)).toBe(2001);
});

it.each(['away', 'silent', 'empty'] as const)(
  'the horizon stays at the last known watermark while watermarks are %s',
  async (mode) => {
    const { world, horizons } = setUp();
    await world.stored.publish(1, 1000);
    await horizons.of(1);
    world.mode = mode;
    expect(await horizons.of(1)).toBe(1001);
    expect(world.faults).toBe(mode === 'empty' ? 0 : 1);
  },
);

it('the horizon never goes back when a lower watermark is read', async () => {
  const { world, horizons } = setUp();
  await world.stored.publish(1, 1000);
  await horizons.of(1);
  const lower = createHorizons({ watermarks: { read: async () => [5000, 300][reads++] ?? null }, onFault: () => {} });
  let reads = 0;
  expect([await lower.of(1), await lower.of(1)]).toEqual([5001, 5001]);
});

it('callers during a read of the watermark share the next read, which covers everything published before', async () => {
  const readings: PromiseWithResolvers<number>[] = [];
  const read = () => {
    readings.push(Promise.withResolvers<number>());
    return readings.at(-1)!.promise;
  };
  const horizons = createHorizons({ watermarks: { read }, onFault: () => {} });
  const first = horizons.of(1);
  const later = [horizons.of(1), horizons.of(1)];
  expect(readings).toHaveLength(1);
  readings[0]!.resolve(1000);
  expect(await first).toBe(1001);
  expect(readings).toHaveLength(2);
  const last = horizons.of(1);
  readings[1]!.resolve(2000);
  expect(await Promise.all(later)).toEqual([2001, 2001]);
  readings[2]!.resolve(3000);
  expect(await last).toBe(3001);
});

it('the horizon may be a moment old while several pages are read, and never for a single reader', async () => {
  const world = { published: 1000, readings: 0 };
  const read = async () => {
    world.readings++;
    return world.published;
  };
  const horizons = createHorizons({ watermarks: { read }, onFault: () => {} });
  expect(await horizons.of(1, true)).toBe(1001);
  world.published = 2000;
  vi.advanceTimersByTime(49);
  expect(await Promise.all([horizons.of(1, true), horizons.of(1, true)])).toEqual([1001, 1001]);
  expect(world.readings).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await horizons.of(1, true)).toBe(2001);
  world.published = 3000;
  expect(await horizons.of(1)).toBe(3001);
  expect(world.readings).toBe(3);
});

it('the horizon is read again after a failed read, also while several pages are read', async () => {
  const { world, horizons } = setUp();
  await world.stored.publish(1, 1000);
  await horizons.of(1, true);
  world.mode = 'away';
  vi.advanceTimersByTime(50);
  expect(await horizons.of(1, true)).toBe(1001);
  world.mode = 'open';
  await world.stored.publish(1, 2000);
  vi.advanceTimersByTime(50);
  expect(await horizons.of(1, true)).toBe(2001);
  expect(world.faults).toBe(1);
});

it('the horizon of one partition does not wait for that of another', async () => {
  const read = (partition: number) => (partition === 1 ? new Promise<never>(() => {}) : Promise.resolve(1000));
  const horizons = createHorizons({ watermarks: { read }, onFault: () => {} });
  void horizons.of(1).catch(() => {});
  expect(await horizons.of(2)).toBe(1001);
});

it('the horizon is unknown until a watermark is published', async () => {
  const { world, horizons } = setUp();
  expect(await horizons.of(1)).toBeNull();
  expect(horizons.last(1)).toBeNull();
  await world.stored.publish(1, 1000);
  expect(await horizons.of(1)).toBe(1001);
});

it.each(['away', 'silent'] as const)(
  'the horizon throws while watermarks are %s and none was ever read',
  async (mode) => {
    const { world, horizons } = setUp();
    world.mode = mode;
    await expect(horizons.of(1)).rejects.toMatchObject({ code: 'INTERNAL_SERVER_ERROR' });
    expect(world.faults).toBe(0);
  },
);
