import { createRequire } from 'node:module';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import './consumer/kafkajs-overrides.ts';
import './kafkajs-clock.ts';

const require = createRequire(import.meta.url);
const HOUR_MS = 3_600_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const SHIFTS = [
  ['back', -HOUR_MS],
  ['forward', HOUR_MS],
] as const;

it.each(SHIFTS)('heartbeats keep their interval when the wall clock is set %s by an hour', async (_, shiftMs) => {
  const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup');
  const quiet = { namespace: () => quiet, debug: () => {}, info: () => {}, error: () => {}, warn: () => {} };
  const sent: number[] = [];
  const group = new ConsumerGroup({
    logger: quiet,
    cluster: {},
    instrumentationEmitter: { emit: () => {} },
    retry: { retries: 0 },
    topics: [],
    topicConfigurations: {},
    assigners: [],
  });
  Object.assign(group, { memberId: 'm', generationId: 1 });
  group.coordinator = { heartbeat: async () => void sent.push(performance.now()) };
  const beat = async (forMs: number) => {
    for (let passedMs = 0; passedMs < forMs; passedMs += 100) {
      await group.heartbeat({ interval: 1_000 });
      await vi.advanceTimersByTimeAsync(100);
    }
  };
  await beat(3_000);
  vi.setSystemTime(Date.now() + shiftMs);
  await beat(10_000);
  const gaps = sent.slice(1).map((at, before) => at - sent[before]!);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1_200);
  expect(sent.length).toBeGreaterThanOrEqual(10);
});

it.each(SHIFTS)('a request times out on time when the wall clock is set %s by an hour', async (_, shiftMs) => {
  const RequestQueue = require('kafkajs/src/network/requestQueue');
  const queue = new RequestQueue({ maxInFlightRequests: 1, requestTimeout: 1_000, enforceRequestTimeout: true });
  const lateAt: number[] = [];
  const startMs = performance.now();
  queue.inflight.set(1, {
    requestTimeout: 1_000,
    sentAt: Date.now(),
    timeoutRequest: () => {
      lateAt.push(performance.now() - startMs);
      queue.inflight.clear();
    },
  });
  queue.scheduleRequestTimeoutCheck();
  vi.setSystemTime(Date.now() + shiftMs);
  await vi.advanceTimersByTimeAsync(5_000);
  queue.destroy();
  expect(lateAt).toHaveLength(1);
  expect(lateAt[0]).toBeGreaterThanOrEqual(1_000);
  expect(lateAt[0]).toBeLessThanOrEqual(1_300);
});

it('a connection has a timer only for the first request that can be late', async () => {
  const RequestQueue = require('kafkajs/src/network/requestQueue');
  const quiet = () => {};
  const queue = new RequestQueue({
    maxInFlightRequests: null,
    requestTimeout: 1_000,
    enforceRequestTimeout: true,
    clientId: 'test',
    broker: 'test',
    logger: { debug: quiet, error: quiet, warn: quiet, info: quiet },
  });
  const ended: string[] = [];
  const push = (correlationId: number, requestTimeout: number) =>
    queue.push({
      entry: {
        apiName: 'Fetch',
        apiKey: 1,
        apiVersion: 13,
        correlationId,
        resolve: () => ended.push(`${correlationId} answered`),
        reject: ({ name }: Error) => ended.push(`${correlationId} ${name}`),
      },
      expectResponse: true,
      requestTimeout,
      sendRequest: quiet,
    });
  queue.scheduleRequestTimeoutCheck();
  expect(vi.getTimerCount()).toBe(0);
  push(1, 5_000);
  push(2, 1_000);
  push(3, 1_000);
  await vi.advanceTimersByTimeAsync(500);
  queue.fulfillRequest({ correlationId: 2, payload: Buffer.alloc(0), size: 0 });
  await vi.advanceTimersByTimeAsync(499);
  expect(ended).toEqual(['2 answered']);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(2);
  expect(ended).toEqual(['2 answered', '3 KafkaJSRequestTimeoutError']);
  await vi.advanceTimersByTimeAsync(3_900);
  expect(ended).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(200);
  expect(ended[2]).toBe('1 KafkaJSRequestTimeoutError');
  expect(vi.getTimerCount()).toBe(0);
});
