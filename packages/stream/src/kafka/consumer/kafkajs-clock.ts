/**
 * Where kafkajs 2.2.4 measures durations of ours by the wall clock: whether a heartbeat is due, and whether a request is
 * late. A clock set back by an hour would keep both quiet for an hour: the group takes the partitions away, nobody here
 * is told, and a broker that hangs is waited for. A clock set forth would end every request under way.
 *
 * What stays by the wall clock does no harm: a client-side throttle (brokers throttle by themselves), and the age of
 * metadata, which a fault asks for anew.
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
/** When the last heartbeat was, by the monotonic clock, and what kafkajs noted for it. */
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
/** When each request under way was sent, and when each queue checks next, by the monotonic clock. */
const sentAtMs = new WeakMap<TimedRequest, number>();
const lookAtMs = new WeakMap<RequestQueue, number>();

/**
 * kafkajs checks every connection for late requests ten times a second, even when no request is under way: that is most
 * of what wakes an idle consumer. Here a timer waits for the request that would be late first, and there is none while
 * no request is under way.
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
  lookAtMs.set(queue, dueMs);
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
  if (this.enforceRequestTimeout && dueMs < (lookAtMs.get(this) ?? Number.POSITIVE_INFINITY)) awaitLate(this);
};

queuePrototype.destroy = function end(this: RequestQueue) {
  destroy.call(this);
  this.requestTimeoutIntervalId = null;
  lookAtMs.delete(this);
};
