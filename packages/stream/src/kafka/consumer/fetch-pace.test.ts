import { EventEmitter } from 'node:events';
import type { Cluster } from 'kafkajs';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BUSY_WAIT_MS, FetchCancelled, FetchPace } from './fetch-pace.ts';
import type { FetchedBatch } from './kafkajs-overrides.ts';

/** The batches of a fetch from one partition. */
const batchesOf = (count: number) =>
  [{ rawMessages: { batches: Array.from({ length: count }, () => ({})) } }] as unknown as FetchedBatch[];

let pace: FetchPace;
const calm = { hasPaused: false, heartbeatInMs: 900 };
beforeEach(() => {
  vi.useFakeTimers();
  pace = new FetchPace({ sessionTimeoutMs: 30_000 });
});
afterEach(() => void vi.useRealTimers());

it('an idle fetch waits until the next heartbeat, and never delays the heartbeat', () => {
  expect(pace.waitMs(calm)).toBe(920);
  expect(pace.waitMs({ ...calm, heartbeatInMs: 0.5 })).toBe(BUSY_WAIT_MS);
  expect(pace.waitMs({ ...calm, heartbeatInMs: -5_000 })).toBe(BUSY_WAIT_MS);
});

it('a fetch waits only briefly for half a second after a record or a pause', () => {
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

it('a fetch waits three seconds after four idle seconds, at most 0.3 of a session timeout, and never soon after a join', () => {
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
  pace.joined();
  expect(pace.waitMs(calm)).toBe(920);
  vi.advanceTimersByTime(10_000);
  expect(pace.waitMs(calm)).toBe(3_000);
});

it('a fetch returns its records or its fault, and an empty list when all fetches are ended', async () => {
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
  expect(rejected).toEqual([expect.any(FetchCancelled)]);
  expect(socket.listenerCount('data')).toBe(0);
});
