import { createMetrics } from '@playline/runtime';
import type { PublishedRecord, RecordPlace } from '@playline/stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSendTick, isTick } from './steps/send-tick.ts';
import { openTicks, type Ticks } from './ticks.ts';

const TOPIC = 'activities';

describe('ticks for idle partitions', () => {
  const sent: PublishedRecord[] = [];
  /** Records that wait, by partition. */
  const lag = new Map<number, number>();
  let loggedAtMs: number | null = 5;
  let ticks: Ticks;
  const sendPlaced = async (record: PublishedRecord): Promise<RecordPlace> => {
    sent.push(record);
    return { partition: record.partition ?? -1, offset: 0, loggedAtMs };
  };
  const partitions = () => sent.splice(0).map(({ partition }) => partition);
  beforeEach(() => {
    vi.useFakeTimers();
    sent.length = 0;
    loggedAtMs = 5;
    lag.clear();
    ticks = openTicks({
      topic: TOPIC,
      lag: () => new Map([...[...lag].map(([name, count]) => [`${TOPIC}/${name}`, count] as const), ['tokens/9', 0]]),
      sendTick: createSendTick({ sendPlaced }, TOPIC),
      metrics: createMetrics('test'),
    });
  });
  afterEach(async () => {
    await ticks.close();
    vi.useRealTimers();
  });

  it('go to a partition in which nothing came for a second and nothing waits, once a second, and to no other', async () => {
    for (const partition of [0, 1, 2]) lag.set(partition, partition === 2 ? 1 : 0);
    ticks.taken(0);
    await vi.advanceTimersByTimeAsync(250);
    expect(partitions()).toEqual([1]);
    await vi.advanceTimersByTimeAsync(750);
    expect(partitions()).toEqual([0]);
    lag.set(2, 0);
    ticks.taken(1);
    await vi.advanceTimersByTimeAsync(250);
    expect(partitions()).toEqual([2]);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(partitions().length).toBe(12);
    lag.clear();
    await vi.advanceTimersByTimeAsync(4_000);
    expect(partitions()).toEqual([]);
  });

  it('are records without a value that are told from any other', async () => {
    lag.set(0, 0);
    await vi.advanceTimersByTimeAsync(250);
    const [record] = sent;
    expect(record).toMatchObject({ topic: TOPIC, partition: 0, key: null, value: null });
    expect(isTick({ value: null, headers: record!.headers! })).toBe(true);
    expect(isTick({ value: Buffer.alloc(0), headers: record!.headers! })).toBe(false);
    expect(isTick({ value: null, headers: {} })).toBe(false);
  });

  it('that cannot be sent, or are given no time by the log, are said until one is', async () => {
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
});
