import { createMetrics } from '@playline/runtime';
import type { PublishedRecord } from '@playline/stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createSendTick, isTick, openTicks, type Ticks } from './ticks.ts';

const TOPIC = 'activities';

const sent: PublishedRecord[] = [];
const lag = new Map<number, number>();
let loggedAtMs: number | null = 5;
let ticks: Ticks;
const watermarks = new Map<number, number>();
let isRedisStopped = false;
const sendForOffset = async (record: PublishedRecord) => {
  sent.push(record);
  return { partition: record.partition ?? -1, offset: 0, loggedAtMs };
};
const partitions = () => sent.splice(0).map(({ partition }) => partition);
beforeEach(() => {
  vi.useFakeTimers();
  sent.length = 0;
  loggedAtMs = 5;
  lag.clear();
  watermarks.clear();
  isRedisStopped = false;
  ticks = openTicks({
    topic: TOPIC,
    lag: () => new Map([...[...lag].map(([name, count]) => [`${TOPIC}/${name}`, count] as const), ['tokens/9', 0]]),
    sendTick: createSendTick({ sendForOffset }, TOPIC),
    readWatermark: async (partition) => {
      if (isRedisStopped) throw new Error('stopped');
      return watermarks.get(partition) ?? null;
    },
    metrics: createMetrics('test'),
  });
});
afterEach(async () => {
  await ticks.close();
  vi.useRealTimers();
});

it('a partition gets a tick after a second without records, if it has no unread records', async () => {
  for (const partition of [0, 1, 2]) lag.set(partition, partition === 2 ? 1 : 0);
  ticks.recordRead(0);
  await vi.advanceTimersByTimeAsync(250);
  expect(partitions()).toEqual([1]);
  await vi.advanceTimersByTimeAsync(750);
  expect(partitions()).toEqual([0]);
  lag.set(2, 0);
  ticks.recordRead(1);
  await vi.advanceTimersByTimeAsync(250);
  expect(partitions()).toEqual([2]);
  lag.clear();
  await vi.advanceTimersByTimeAsync(40_000);
  expect(partitions()).toEqual([]);
});

it('the tick interval of an idle partition doubles up to 64 s, and is one second again after a record', async () => {
  lag.set(0, 0);
  ticks.recordRead(0);
  const atS: number[] = [];
  for (let s = 1; s <= 255; s++) {
    await vi.advanceTimersByTimeAsync(1_000);
    if (partitions().length > 0) atS.push(s);
  }
  expect(atS).toEqual([1, 3, 7, 15, 31, 63, 127, 191, 255]);
  ticks.recordRead(0);
  await vi.advanceTimersByTimeAsync(750);
  expect(partitions()).toEqual([]);
  await vi.advanceTimersByTimeAsync(250);
  expect(partitions()).toEqual([0]);
});

it('the ticks of idle partitions converge, regardless of when each partition became idle', async () => {
  const atMs = new Map<number, number[]>();
  for (const partition of [0, 1, 2, 3]) {
    lag.set(partition, 0);
    ticks.recordRead(partition);
    await vi.advanceTimersByTimeAsync(700);
  }
  for (let at = 0; at < 960; at++) {
    await vi.advanceTimersByTimeAsync(250);
    for (const partition of partitions()) atMs.set(partition!, [...(atMs.get(partition!) ?? []), at * 250]);
  }
  const [first, ...rest] = [0, 1, 2, 3].map((partition) => atMs.get(partition)!.slice(-2));
  expect(first![1]! - first![0]!).toBe(64_000);
  for (const times of rest) expect(times).toEqual(first);
});

it('a tick is sent within 1.25 s after a watermark was lost or decreased', async () => {
  for (const partition of [0, 1]) lag.set(partition, 0);
  await vi.advanceTimersByTimeAsync(31_250);
  for (const partition of [0, 1]) watermarks.set(partition, 1_000);
  await vi.advanceTimersByTimeAsync(2_000);
  partitions();
  watermarks.delete(0);
  await vi.advanceTimersByTimeAsync(1_250);
  expect(partitions()).toEqual([0]);
  isRedisStopped = true;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(partitions()).not.toContain(1);
  watermarks.set(1, 999);
  isRedisStopped = false;
  await vi.advanceTimersByTimeAsync(1_250);
  expect(partitions()).toContain(1);
});

it('a tick is a record without a value and is distinguished from other records by its header', async () => {
  lag.set(0, 0);
  await vi.advanceTimersByTimeAsync(250);
  const [record] = sent;
  expect(record).toMatchObject({ topic: TOPIC, partition: 0, key: null, value: null });
  expect(isTick({ value: null, headers: record!.headers! })).toBe(true);
  expect(isTick({ value: Buffer.alloc(0), headers: record!.headers! })).toBe(false);
  expect(isTick({ value: null, headers: {} })).toBe(false);
});

it('failed ticks and ticks without a log time are reported until a tick succeeds', async () => {
  lag.set(0, 0);
  loggedAtMs = null;
  await vi.advanceTimersByTimeAsync(250);
  expect(ticks.working).toBe(false);
  expect(ticks.reasons()).toEqual({ ticks: expect.stringContaining('LogAppendTime') });
  loggedAtMs = 6;
  await vi.advanceTimersByTimeAsync(1_250);
  expect(ticks.working).toBe(true);
  expect(ticks.reasons()).toEqual({});
});
