import { openMemoryWatermarks } from '@playline/chain/memory';
import { hang } from '@playline/testkit/hang';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createHorizons } from './horizons.ts';

/** Creates horizons with a watermark store that can be unreachable, hang or be empty. */
function setUp() {
  const stored = openMemoryWatermarks();
  const world = { mode: 'up' as 'up' | 'unreachable' | 'hanging' | 'empty', faults: 0, stored };
  const read = (partition: number) => {
    if (world.mode === 'unreachable') return Promise.reject(new Error('ECONNREFUSED'));
    if (world.mode === 'hanging') return hang();
    return world.mode === 'empty' ? Promise.resolve(null) : stored.read(partition);
  };
  const horizons = createHorizons({ watermarks: { read }, onFault: () => world.faults++ });
  return { world, horizons };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

it('the horizon is one microsecond above the current watermark of the partition', async () => {
  const { world, horizons } = setUp();
  await world.stored.publish(1, 1000);
  await world.stored.publish(2, 9000);
  expect(await horizons.read(1)).toBe(1001);
  await world.stored.publish(1, 2000);
  expect(await horizons.read(1)).toBe(2001);
});

it.each(['unreachable', 'hanging', 'empty'] as const)(
  'the horizon stays at the last known watermark while the watermark store is %s',
  async (mode) => {
    const { world, horizons } = setUp();
    await world.stored.publish(1, 1000);
    await horizons.read(1);
    world.mode = mode;
    expect(await horizons.read(1)).toBe(1001);
    expect(world.faults).toBe(mode === 'empty' ? 0 : 1);
  },
);

it('the horizon never decreases', async () => {
  const { world, horizons } = setUp();
  await world.stored.publish(1, 1000);
  await horizons.read(1);
  const lower = createHorizons({ watermarks: { read: async () => [5000, 300][reads++] ?? null }, onFault: () => {} });
  let reads = 0;
  expect([await lower.read(1), await lower.read(1)]).toEqual([5001, 5001]);
});

it('callers that arrive during a watermark read share the next read, so that they see all earlier watermarks', async () => {
  const readings: PromiseWithResolvers<number>[] = [];
  const read = () => {
    readings.push(Promise.withResolvers<number>());
    return readings.at(-1)!.promise;
  };
  const horizons = createHorizons({ watermarks: { read }, onFault: () => {} });
  const first = horizons.read(1);
  const later = [horizons.read(1), horizons.read(1)];
  expect(readings).toHaveLength(1);
  readings[0]!.resolve(1000);
  expect(await first).toBe(1001);
  expect(readings).toHaveLength(2);
  const last = horizons.read(1);
  readings[1]!.resolve(2000);
  expect(await Promise.all(later)).toEqual([2001, 2001]);
  readings[2]!.resolve(3000);
  expect(await last).toBe(3001);
});

it('concurrent readers share a watermark for up to 50 ms, while a single reader always gets the latest watermark', async () => {
  const world = { published: 1000, readings: 0 };
  const read = async () => {
    world.readings++;
    return world.published;
  };
  const horizons = createHorizons({ watermarks: { read }, onFault: () => {} });
  expect(await horizons.read(1, true)).toBe(1001);
  world.published = 2000;
  vi.advanceTimersByTime(49);
  expect(await Promise.all([horizons.read(1, true), horizons.read(1, true)])).toEqual([1001, 1001]);
  expect(world.readings).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await horizons.read(1, true)).toBe(2001);
  world.published = 3000;
  expect(await horizons.read(1)).toBe(3001);
  expect(world.readings).toBe(3);
});

it('concurrent readers get a new watermark after a failed read', async () => {
  const { world, horizons } = setUp();
  await world.stored.publish(1, 1000);
  await horizons.read(1, true);
  world.mode = 'unreachable';
  vi.advanceTimersByTime(50);
  expect(await horizons.read(1, true)).toBe(1001);
  world.mode = 'up';
  await world.stored.publish(1, 2000);
  vi.advanceTimersByTime(50);
  expect(await horizons.read(1, true)).toBe(2001);
  expect(world.faults).toBe(1);
});

it('a hanging watermark read does not block other partitions', async () => {
  const read = (partition: number) => (partition === 1 ? new Promise<never>(() => {}) : Promise.resolve(1000));
  const horizons = createHorizons({ watermarks: { read }, onFault: () => {} });
  void horizons.read(1).catch(() => {});
  expect(await horizons.read(2)).toBe(1001);
});

it('the horizon is null until a watermark is published', async () => {
  const { world, horizons } = setUp();
  expect(await horizons.read(1)).toBeNull();
  expect(horizons.lastKnown(1)).toBeNull();
  await world.stored.publish(1, 1000);
  expect(await horizons.read(1)).toBe(1001);
});

it.each(['unreachable', 'hanging'] as const)(
  'reading the horizon fails while the watermark store is %s if no watermark is known',
  async (mode) => {
    const { world, horizons } = setUp();
    world.mode = mode;
    await expect(horizons.read(1)).rejects.toMatchObject({ code: 'INTERNAL_SERVER_ERROR' });
    expect(world.faults).toBe(0);
  },
);
