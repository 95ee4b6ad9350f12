/**
 * Replaces the wall clock where kafkajs 2.2.4 measures durations by it. If the clock is set back by an hour, kafkajs sends
 * no heartbeat for an hour; if it is set forward, all requests in flight fail.
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

interface Heartbeating {
  lastRequest: number;
  heartbeat(options: { interval: number }): Promise<void>;
}

interface TimedRequest {
  readonly requestTimeout: number;
  timeoutRequest(): void;
}

interface RequestQueue {
  readonly enforceRequestTimeout: boolean;
  readonly inflight: ReadonlyMap<number, TimedRequest>;
  requestTimeoutIntervalId: NodeJS.Timeout | null | undefined;
  sendSocketRequest(request: TimedRequest): void;
  scheduleRequestTimeoutCheck(): void;
  destroy(): void;
}

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as Heartbeating;
const originalHeartbeat = groupPrototype.heartbeat;
/** Monotonic time of the last heartbeat, and the value that kafkajs noted for it. */
const heartbeats = new WeakMap<Heartbeating, { lastRequest: number; atMs: number }>();

groupPrototype.heartbeat = async function heartbeat(this: Heartbeating, options: { interval: number }) {
  const known = heartbeats.get(this);
  if (known === undefined || known.lastRequest !== this.lastRequest) note(this);
  // Makes the heartbeat due: kafkajs compares this value with the wall clock.
  else if (performance.now() - known.atMs >= options.interval) this.lastRequest = 0;
  const before = this.lastRequest;
  await originalHeartbeat.call(this, options);
  if (this.lastRequest !== before) note(this);
};

function note(group: Heartbeating): void {
  heartbeats.set(group, { lastRequest: group.lastRequest, atMs: performance.now() });
}

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue;
const { sendSocketRequest, destroy } = queuePrototype;
/** Monotonic times at which each request was sent, and at which each queue checks next. */
const sentAtMs = new WeakMap<TimedRequest, number>();
const checkAtMs = new WeakMap<RequestQueue, number>();

/** A timer only for the first request that can be late; kafkajs checks every connection ten times a second. */
function awaitLate(queue: RequestQueue): void {
  const nowMs = performance.now();
  let dueMs = Number.POSITIVE_INFINITY;
  for (const request of queue.inflight.values()) {
    const sentMs = sentAtMs.get(request) ?? nowMs;
    sentAtMs.set(request, sentMs);
    dueMs = Math.min(dueMs, sentMs + request.requestTimeout);
  }
  clearTimeout(queue.requestTimeoutIntervalId ?? undefined);
  queue.requestTimeoutIntervalId = null;
  checkAtMs.set(queue, dueMs);
  if (dueMs === Number.POSITIVE_INFINITY) return;
  queue.requestTimeoutIntervalId = setTimeout(() => endLate(queue), Math.max(1, Math.ceil(dueMs - nowMs)));
}

function endLate(queue: RequestQueue): void {
  const nowMs = performance.now();
  for (const request of [...queue.inflight.values()])
    if (nowMs - (sentAtMs.get(request) ?? nowMs) >= request.requestTimeout) request.timeoutRequest();
  awaitLate(queue);
}

queuePrototype.scheduleRequestTimeoutCheck = function schedule(this: RequestQueue) {
  if (this.enforceRequestTimeout) awaitLate(this);
};

queuePrototype.sendSocketRequest = function send(this: RequestQueue, request: TimedRequest) {
  sentAtMs.set(request, performance.now());
  sendSocketRequest.call(this, request);
  const dueMs = performance.now() + request.requestTimeout;
  if (this.enforceRequestTimeout && dueMs < (checkAtMs.get(this) ?? Number.POSITIVE_INFINITY)) awaitLate(this);
};

queuePrototype.destroy = function end(this: RequestQueue) {
  destroy.call(this);
  this.requestTimeoutIntervalId = null;
  checkAtMs.delete(this);
};
