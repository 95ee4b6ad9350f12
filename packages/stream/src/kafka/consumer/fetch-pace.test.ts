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

  it('waits until the next heartbeat while nothing comes, and never delays the heartbeat', () => {
    expect(pace.waitMs(calm)).toBe(920);
    expect(pace.waitMs({ ...calm, heartbeatInMs: 0.5 })).toBe(BUSY_WAIT_MS);
    expect(pace.waitMs({ ...calm, heartbeatInMs: -5_000 })).toBe(BUSY_WAIT_MS);
  });

  it('waits only briefly for half a second after a record came or a partition was paused', () => {
    pace.fetched(batchesOf(1));
    vi.advanceTimersByTime(400);
    pace.fetched(batchesOf(0));
    expect(pace.waitMs(calm)).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(920);
    expect(pace.waitMs({ ...calm, hasPaused: true })).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(400);
    expect(pace.waitMs(calm)).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(920);
  });

  it('waits for three seconds once nothing has come for four seconds, and at most for a third of a session', () => {
    const short = new FetchPace({ sessionTimeoutMs: 6_000 });
    vi.advanceTimersByTime(9_900);
    expect(pace.waitMs(calm)).toBe(920);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(3_000);
    expect(short.waitMs(calm)).toBe(1_800);
    pace.fetched(batchesOf(1));
    expect(pace.waitMs(calm)).toBe(BUSY_WAIT_MS);
    vi.advanceTimersByTime(3_900);
    expect(pace.waitMs(calm)).toBe(920);
    vi.advanceTimersByTime(100);
    expect(pace.waitMs(calm)).toBe(3_000);
  });

  it('waits only until the next heartbeat for ten seconds after a rebalance, since another one often follows', () => {
    vi.advanceTimersByTime(10_000);
    pace.joined();
    expect(pace.waitMs(calm)).toBe(920);
    vi.advanceTimersByTime(10_000);
    expect(pace.waitMs(calm)).toBe(3_000);
  });

  it('returns its records or its fault, and nothing once all fetches are ended', async () => {
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
