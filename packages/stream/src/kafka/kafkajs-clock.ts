/**
 * Replaces the wall clock where kafkajs 2.2.4 uses it for durations: whether a heartbeat is due, and whether a request
 * is late. If the clock is set back by an hour, no heartbeat is sent for an hour: the group takes the partitions away
 * without a notice here, and a hanging broker is waited for. If it is set forward, all requests in flight fail.
 *
 * Two uses of the wall clock stay, because they do no harm: the client-side throttle (brokers throttle themselves), and
 * the age of metadata, which a fault refreshes.
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
/** Time of the last heartbeat by the monotonic clock, and the value that kafkajs noted for it. */
const heard = new WeakMap<Heartbeating, { lastRequest: number; atMs: number }>();

groupPrototype.heartbeat = async function heartbeat(this: Heartbeating, options: { interval: number }) {
  const known = heard.get(this);
  if (known === undefined || known.lastRequest !== this.lastRequest) note(this);
  // Makes the heartbeat due whatever the wall clock says: kafkajs compares this value with the wall clock.
  else if (performance.now() - known.atMs >= options.interval) this.lastRequest = 0;
  const before = this.lastRequest;
  await originalHeartbeat.call(this, options);
  if (this.lastRequest !== before) note(this);
};

function note(group: Heartbeating): void {
  heard.set(group, { lastRequest: group.lastRequest, atMs: performance.now() });
}

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue;
const { sendSocketRequest, destroy } = queuePrototype;
/** By the monotonic clock: when each request in flight was sent, and when each queue checks next. */
const sentAtMs = new WeakMap<TimedRequest, number>();
const checkAtMs = new WeakMap<RequestQueue, number>();

/**
 * kafkajs checks every connection for late requests ten times a second, even without a request in flight: most wake-ups
 * of an idle consumer. Here a timer is set for the first request that can become late, and none without a request.
 */
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
