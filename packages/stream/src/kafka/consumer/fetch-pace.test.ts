import { EventEmitter } from 'node:events';
import type { Cluster } from 'kafkajs';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BUSY_WAIT_MS, FetchCancelled, FetchPace } from './fetch-pace.ts';
import type { FetchedBatch } from './kafkajs-overrides.ts';

const batchesOf = (count: number) =>
  [{ rawMessages: { batches: Array.from({ length: count }, () => ({})) } }] as unknown as FetchedBatch[];

let pace: FetchPace;
const idle = { hasPaused: false, heartbeatInMs: 900 };
beforeEach(() => {
  vi.useFakeTimers();
  pace = new FetchPace({ sessionTimeoutMs: 30_000 });
});
afterEach(() => void vi.useRealTimers());

it('an idle fetch waits until the next heartbeat and does not delay the heartbeat', () => {
  expect(pace.waitMs(idle)).toBe(920);
  expect(pace.waitMs({ ...idle, heartbeatInMs: 0.5 })).toBe(BUSY_WAIT_MS);
  expect(pace.waitMs({ ...idle, heartbeatInMs: -5_000 })).toBe(BUSY_WAIT_MS);
});

it('a fetch waits only briefly during the half second after a record or a pause', () => {
  pace.fetched(batchesOf(1));
  vi.advanceTimersByTime(400);
  pace.fetched(batchesOf(0));
  expect(pace.waitMs(idle)).toBe(BUSY_WAIT_MS);
  vi.advanceTimersByTime(100);
  expect(pace.waitMs(idle)).toBe(920);
  expect(pace.waitMs({ ...idle, hasPaused: true })).toBe(BUSY_WAIT_MS);
  vi.advanceTimersByTime(400);
  expect(pace.waitMs(idle)).toBe(BUSY_WAIT_MS);
  vi.advanceTimersByTime(100);
  expect(pace.waitMs(idle)).toBe(920);
});

it('after four idle seconds, a fetch waits up to 3 s or 30 % of the session timeout, except soon after a join', () => {
  const short = new FetchPace({ sessionTimeoutMs: 6_000 });
  vi.advanceTimersByTime(9_900);
  expect(pace.waitMs(idle)).toBe(920);
  vi.advanceTimersByTime(100);
  expect(pace.waitMs(idle)).toBe(3_000);
  expect(short.waitMs(idle)).toBe(1_800);
  pace.fetched(batchesOf(1));
  expect(pace.waitMs(idle)).toBe(BUSY_WAIT_MS);
  vi.advanceTimersByTime(3_900);
  expect(pace.waitMs(idle)).toBe(920);
  vi.advanceTimersByTime(100);
  expect(pace.waitMs(idle)).toBe(3_000);
  pace.joined();
  expect(pace.waitMs(idle)).toBe(920);
  vi.advanceTimersByTime(10_000);
  expect(pace.waitMs(idle)).toBe(3_000);
});

it('a fetch resolves with its records, rejects with its fault, or is cancelled with an empty list', async () => {
  const batches = batchesOf(1);
  expect(await pace.awaitFetch(Promise.resolve(batches))).toBe(batches);
  await expect(pace.awaitFetch(Promise.reject(new Error('refused')))).rejects.toThrow('refused');
  const socket = new EventEmitter().on('data', () => {});
  const failures: Error[] = [];
  const connection = { socket, rejectRequests: (fault: Error) => void failures.push(fault) };
  const unused = { socket: undefined, rejectRequests: () => {} };
  const brokers = {
    1: { connectionPool: { pool: [unused, connection] } },
    2: { connectionPool: { pool: [unused, unused] } },
  };
  const waiting = pace.awaitFetch(new Promise(() => {}));
  pace.endAll({ brokerPool: { brokers } } as unknown as Cluster);
  expect(await waiting).toEqual([]);
  expect(failures).toEqual([expect.any(FetchCancelled)]);
  expect(socket.listenerCount('data')).toBe(0);
});
