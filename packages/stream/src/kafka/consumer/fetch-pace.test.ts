import { EventEmitter } from 'node:events';
import type { Cluster } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BUSY_WAIT_MS, FetchOver, FetchPace } from './fetch-pace.ts';
import type { FetchedBatch } from './kafkajs-overrides.ts';

/** What a fetch brings of one partition: so many batches. */
const batchesOf = (count: number) =>
  [{ rawMessages: { batches: Array.from({ length: count }, () => ({})) } }] as unknown as FetchedBatch[];

describe('a fetch', () => {
  let pace: FetchPace;
  const calm = { hasPaused: false, heartbeatInMs: 900 };
  beforeEach(() => {
    vi.useFakeTimers();
    pace = new FetchPace({ sessionTimeoutMs: 30_000 });
  });
  afterEach(() => void vi.useRealTimers());

  it('waits until the heartbeat that is due next while nothing comes, and never so long that it comes late', () => {
    expect(pace.waitMs(calm)).toBe(920);
    expect(pace.waitMs({ ...calm, heartbeatInMs: 0.5 })).toBe(BUSY_WAIT_MS);
    expect(pace.waitMs({ ...calm, heartbeatInMs: -5_000 })).toBe(BUSY_WAIT_MS);
  });

  it('waits shortly for two seconds behind anything that came, and behind anything that was paused', () => {
    pace.fetched(batchesOf(1));
    vi.advanceTimersByTime(1_900);
    pace.fetched(batchesOf(0));
    expect(pace.waitMs(calm)).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(920);
    expect(pace.waitMs({ ...calm, hasPaused: true })).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(1_900);
    expect(pace.waitMs(calm)).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(920);
  });

  it('waits for three seconds once nothing has come for ten seconds, and at most for a third of a session', () => {
    const short = new FetchPace({ sessionTimeoutMs: 6_000 });
    vi.advanceTimersByTime(9_900);
    expect(pace.waitMs(calm)).toBe(920);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(3_000);
    expect(short.waitMs(calm)).toBe(1_800);
    pace.fetched(batchesOf(1));
    expect(pace.waitMs(calm)).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(10_000);
    expect(pace.waitMs(calm)).toBe(3_000);
  });

  it('waits until the next heartbeat alone for ten seconds behind a rebalance, since another one often follows', () => {
    vi.advanceTimersByTime(10_000);
    pace.joined();
    expect(pace.waitMs(calm)).toBe(920);
    vi.advanceTimersByTime(10_000);
    expect(pace.waitMs(calm)).toBe(3_000);
  });

  it('brings what it has found, its fault, and nothing once all are ended', async () => {
    const batches = batchesOf(1);
    expect(await pace.until(Promise.resolve(batches))).toBe(batches);
    await expect(pace.until(Promise.reject(new Error('refused')))).rejects.toThrow('refused');
    const socket = new EventEmitter().on('data', () => {});
    const rejected: Error[] = [];
    const connection = { socket, rejectRequests: (fault: Error) => void rejected.push(fault) };
    const unused = { socket: undefined, rejectRequests: () => {} };
    const brokers = {
      1: { connectionPool: { pool: [unused, connection] } },
      2: { connectionPool: { pool: [unused, unused] } },
    };
    const waiting = pace.until(new Promise(() => {}));
    pace.endAll({ brokerPool: { brokers } } as unknown as Cluster);
    expect(await waiting).toEqual([]);
    expect(rejected).toEqual([expect.any(FetchOver)]);
    expect(socket.listenerCount('data')).toBe(0);
  });
});
