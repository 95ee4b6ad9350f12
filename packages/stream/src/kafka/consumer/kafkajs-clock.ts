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
  readonly requestTimeout: number;
  readonly inflight: ReadonlyMap<number, TimedRequest>;
  readonly isConnected: () => boolean;
  requestTimeoutIntervalId: NodeJS.Timeout | null;
  destroy(): void;
}

/** As in the original: a request is late by at most this much more. */
const CHECK_INTERVAL_MAX_MS = 100;

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as Heartbeating;
const originalHeartbeat = groupPrototype.heartbeat;
/** When a heartbeat was last heard of, and what kafkajs made of it. */
const heard = new WeakMap<Heartbeating, { lastRequest: number; atMs: number }>();

groupPrototype.heartbeat = function heartbeat(this: Heartbeating, options: { interval: number }) {
  const known = heard.get(this);
  const nowMs = performance.now();
  if (known === undefined || known.lastRequest !== this.lastRequest)
    heard.set(this, { lastRequest: this.lastRequest, atMs: nowMs });
  // Due whatever the wall clock says: kafkajs compares this with it.
  else if (nowMs - known.atMs >= options.interval) this.lastRequest = 0;
  return originalHeartbeat.call(this, options);
};

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue & {
  scheduleRequestTimeoutCheck(): void;
};

queuePrototype.scheduleRequestTimeoutCheck = function schedule(this: RequestQueue) {
  if (!this.enforceRequestTimeout) return;
  this.destroy();
  const sinceMs = new WeakMap<TimedRequest, number>();
  const check = () => {
    const nowMs = performance.now();
    for (const request of this.inflight.values()) {
      const since = sinceMs.get(request) ?? nowMs;
      sinceMs.set(request, since);
      if (nowMs - since > request.requestTimeout) request.timeoutRequest();
    }
    if (!this.isConnected()) this.destroy();
  };
  this.requestTimeoutIntervalId = setInterval(check, Math.min(this.requestTimeout, CHECK_INTERVAL_MAX_MS));
};
