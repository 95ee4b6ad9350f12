import { createRequire } from 'node:module';
import { connect, isIP, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Cluster, ISocketFactory, ISocketFactoryArgs } from 'kafkajs';
import { TopicGone } from '../../partitions/log-partition.ts';
import { FetchOver } from './fetch-pace.ts';
import type { FetchedRecords } from './record-decoding.ts';

/**
 * Changes of kafkajs 2.2.4: timers only while a request waits; hooks around `joinAndSync`, which also rejoins when the
 * group has expelled the member; offsets out of range are left to the owner; hooks around each fetch; responses are read
 * without a copy per chunk; no wall clock. Contract tests fail when the pinned source differs.
 */

const require = createRequire(import.meta.url);

/** A coordinator that changes or loads its groups needs a moment. */
const JOIN_AGAIN_MS = 200;
/** As in kafkajs. */
const PENDING_CHECK_MS = 10;

interface TimedRequest {
  readonly requestTimeout: number;
  timeoutRequest(): void;
}

interface RequestQueue {
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  pending: unknown[];
  readonly enforceRequestTimeout: boolean;
  readonly inflight: ReadonlyMap<number, TimedRequest>;
  requestTimeoutIntervalId: NodeJS.Timeout | null | undefined;
  checkPendingRequests(): void;
  scheduleCheckPendingRequests(): void;
  sendSocketRequest(request: TimedRequest): void;
  scheduleRequestTimeoutCheck(): void;
  destroy(): void;
}

interface Heartbeating {
  lastRequest: number;
  heartbeat(options: { interval: number }): Promise<void>;
}

export interface Coordinator {
  offsetFetch(request: { groupId: string; topics: { topic: string; partitions: { partition: number }[] }[] }): Promise<{
    responses: { topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[];
  }>;
}

/** The used members of kafkajs's ConsumerGroup. */
export interface ConsumerGroup {
  readonly cluster: object;
  readonly memberId: string | null;
  readonly generationId: number | null;
  maxWaitTime: number;
  /** Of one generation. Commits through it are refused when the generation is over. */
  readonly offsetManager: {
    commitOffsets(offsets: {
      topics: { topic: string; partitions: { partition: number; offset: string; metadata: string }[] }[];
    }): Promise<void>;
    resolveOffset(position: { topic: string; partition: number; offset: string }): void;
  };
  assigned(): { topic: string; partitions: number[] }[];
  paused(): readonly object[];
  pause(partitions: { topic: string; partitions: number[] }[]): void;
  resume(partitions: { topic: string; partitions: number[] }[]): void;
  joinAndSync(): Promise<void>;
}

export interface FetchedBatch {
  readonly topic: string;
  readonly partition: number;
  readonly fetchedOffset: string;
  readonly rawMessages: FetchedRecords;
}

interface Fetching {
  fetch(nodeId: number): Promise<FetchedBatch[]>;
  recoverFromOffsetOutOfRange(fault: { topic: string; partition: number }): Promise<void>;
  recoverFromFetch(fault: unknown): Promise<void>;
}

export interface MembershipHooks {
  /** Awaited before the member rejoins: until then commits of the old generation are accepted. */
  leaving(group: ConsumerGroup): Promise<void>;
  /** Awaited when the assignment is known, before anything is fetched. */
  joined(group: ConsumerGroup): Promise<void>;
  /** Called with every fetch until the partition is paused. */
  outOfRange(at: { topic: string; partition: number }): void;
  fetchWaitMs(group: ConsumerGroup): number;
  /** Resolves to the batches of the fetch, or to none when they are not needed. */
  awaitFetch(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]>;
  /** Called with all fetched batches before any is delivered. */
  fetched(batches: readonly FetchedBatch[]): void;
  /** True when a failed join must not be repeated. */
  cancelled(): boolean;
}

const hooks = new WeakMap<object, MembershipHooks>();

/** Registers the hooks of a consumer by its cluster object, of which each consumer has one. */
export function onMembership(cluster: Cluster, membership: MembershipHooks): void {
  hooks.set(cluster, membership);
}

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue;

queuePrototype.scheduleCheckPendingRequests = function schedule(this: RequestQueue) {
  if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
  // The same delay while throttled; kafkajs computes it by the wall clock.
  this.throttleCheckTimeoutId = setTimeout(() => {
    this.throttleCheckTimeoutId = null;
    this.checkPendingRequests();
  }, PENDING_CHECK_MS);
};

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as ConsumerGroup &
  Fetching &
  Heartbeating;
const { joinAndSync: originalJoin, fetch: originalFetch, heartbeat: originalHeartbeat } = groupPrototype;
const { recoverFromOffsetOutOfRange: originalRecovery, recoverFromFetch: originalFetchRecovery } = groupPrototype;

/** Repeats a failed join when the group has expelled the member. kafkajs handles other failed joins. */
async function join(group: ConsumerGroup, membership: MembershipHooks | undefined): Promise<void> {
  for (;;) {
    try {
      return await originalJoin.call(group);
    } catch (fault) {
      const isForgotten = group.memberId === null && group.generationId !== null;
      const isFinal = (fault as { retriable?: boolean }).retriable === false;
      if (membership === undefined || membership.cancelled() || !isForgotten || isFinal) throw fault;
    }
    await delay(JOIN_AGAIN_MS);
  }
}

groupPrototype.joinAndSync = async function joinAndSync(this: ConsumerGroup) {
  const membership = hooks.get(this.cluster);
  await membership?.leaving(this);
  await join(this, membership);
  await membership?.joined(this);
};

groupPrototype.fetch = async function fetch(this: ConsumerGroup & Fetching, nodeId) {
  const membership = hooks.get(this.cluster);
  if (membership === undefined) return await originalFetch.call(this, nodeId);
  this.maxWaitTime = membership.fetchWaitMs(this);
  const batches = await membership.awaitFetch(originalFetch.call(this, nodeId));
  membership.fetched(batches);
  return batches;
};

groupPrototype.recoverFromOffsetOutOfRange = async function recover(this: ConsumerGroup & Fetching, fault) {
  const membership = hooks.get(this.cluster);
  if (membership === undefined) return await originalRecovery.call(this, fault);
  membership.outOfRange({ topic: fault.topic, partition: fault.partition });
};

groupPrototype.recoverFromFetch = async function recover(this: ConsumerGroup & Fetching, fault) {
  const membership = hooks.get(this.cluster);
  if (membership !== undefined && fault instanceof FetchOver) return;
  if (membership === undefined || !(fault instanceof TopicGone)) return await originalFetchRecovery.call(this, fault);
  membership.outOfRange({ topic: fault.topic, partition: fault.partition });
};

/** As much as one read returns from a full socket. */
const READ_BYTES = 256 * 1024;
/** As in kafkajs. */
const KEEP_ALIVE_DELAY_MS = 60_000;
const SIZE_BYTES = 4;
/** Sixty-four times what one fetch requests. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Splits a stream of bytes into responses with their sizes, with one copy each. kafkajs 2.2.4 keeps every chunk in its
 * own buffer and joins them, which took a fifth of the writer's main thread.
 */
export class ResponseReader {
  readonly #onResponse: (response: Buffer) => void;
  readonly #size = Buffer.alloc(SIZE_BYTES);
  #sizeBytes = 0;
  #response: Buffer | null = null;
  #filled = 0;

  constructor(onResponse: (response: Buffer) => void) {
    this.#onResponse = onResponse;
  }

  /** @throws RangeError for an impossible size */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const part = this.#response ?? this.#size;
      const filled = this.#response === null ? this.#sizeBytes : this.#filled;
      const count = Math.min(part.length - filled, bytes.length - at);
      part.set(bytes.subarray(at, at + count), filled);
      at += count;
      if (this.#response === null) this.#sizeBytes += count;
      else this.#filled += count;
      if (filled + count === part.length) this.#turn();
    }
  }

  #turn(): void {
    if (this.#response === null) {
      const bytes = this.#size.readInt32BE(0);
      if (bytes <= 0 || bytes > RESPONSE_BYTES_MAX)
        throw new RangeError(`A broker announced a response of ${bytes} bytes.`);
      this.#response = Buffer.allocUnsafe(SIZE_BYTES + bytes);
      this.#size.copy(this.#response);
      this.#filled = SIZE_BYTES;
      return;
    }
    const response = this.#response;
    this.#response = null;
    this.#sizeBytes = 0;
    this.#onResponse(response);
  }
}

/**
 * Creates the socket factory. Each `data` event is one response.
 * @param onFault called with every fault of a socket, because kafkajs loses its code
 */
export function createSocketFactory(onFault?: (fault: Error) => void): ISocketFactory {
  return ({ host, port, ssl, onConnect }: ISocketFactoryArgs): Socket => {
    const reader = new ResponseReader((response) => socket.emit('data', response));
    const take = (count: number, buffer: Uint8Array) => {
      try {
        reader.push(buffer.subarray(0, count));
      } catch (fault) {
        socket.destroy(fault as Error);
      }
      return true;
    };
    const onread = { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback: take };
    const socket = ssl
      ? connectTls({ host, port, ...toServerName(host), ...ssl, onread } as ConnectionOptions, onConnect)
      : connect({ host, port, onread }, onConnect);
    if (onFault !== undefined) socket.on('error', onFault);
    return socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
  };
}

/** The host name for TLS. An IP address must not be sent. */
const toServerName = (host: string): { servername?: string } => (isIP(host) === 0 ? { servername: host } : {});

interface Connection {
  chunks: Buffer[];
  processData(bytes: Buffer): void;
}

const { prototype }: { prototype: Connection } = require('kafkajs/src/network/connection');
const { processData } = prototype;
prototype.processData = function (bytes) {
  if (this.chunks.length === 1 && this.chunks[0]!.length === 0) this.chunks = [];
  processData.call(this, bytes);
};

// The wall clock is replaced where kafkajs measures durations by it. If the clock is set back by an hour, kafkajs sends no
// heartbeat for an hour; if it is set forward, all requests in flight fail.

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
