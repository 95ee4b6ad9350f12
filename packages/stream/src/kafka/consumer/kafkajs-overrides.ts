import { createRequire } from 'node:module';
import { connect, isIP, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Cluster, ISocketFactory, ISocketFactoryArgs } from 'kafkajs';
import { TopicDeleted } from '../../partitions/log-partition.ts';
import { FetchCancelled } from './fetch-pace.ts';
import type { FetchedRecords } from './record-decoding.ts';

/**
 * Patches kafkajs 2.2.4:
 * - Timers run only while a request is waiting.
 * - Hooks run around `joinAndSync` and every fetch, and a failed `joinAndSync` of a member is repeated.
 * - The owner of a partition handles offsets that are out of range.
 * - A broker that does not respond in time is abandoned, and a lost coordinator is replaced.
 * - Responses are read without a copy per chunk, and durations do not depend on the system clock.
 *
 * Contract tests fail if the pinned source code changes.
 */

const require = createRequire(import.meta.url);

/** Wait for a coordinator that is moving or loading its groups. */
const REJOIN_WAIT_MS = 200;
/** The value that kafkajs uses. */
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

/** Members of the kafkajs cluster that the kafkajs types omit. */
interface BrokerCluster {
  findGroupCoordinator(query: { groupId: string }): Promise<object>;
}

interface Coordinated {
  readonly groupId: string;
  readonly cluster: object;
  coordinator: object;
  readonly offsetManager: { coordinator: object };
}

export interface Coordinator {
  offsetFetch(request: { groupId: string; topics: { topic: string; partitions: { partition: number }[] }[] }): Promise<{
    responses: { topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[];
  }>;
}

/** The members of the kafkajs ConsumerGroup that are used here. */
export interface ConsumerGroup {
  readonly cluster: object;
  readonly memberId: string | null;
  readonly generationId: number | null;
  maxWaitTime: number;
  /** Bound to one generation. Its commits are rejected after the generation has ended. */
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
  /** Awaited before the member rejoins. Until then, commits in the old generation are accepted. */
  leaving(group: ConsumerGroup): Promise<void>;
  /** Awaited after the assignment and before the first fetch. */
  joined(group: ConsumerGroup): Promise<void>;
  /** Called on every fetch until the partition is paused. */
  outOfRange(at: { topic: string; partition: number }): void;
  fetchWaitMs(group: ConsumerGroup): number;
  /** Resolves with the fetched batches, or with an empty list if they are not needed. */
  awaitFetch(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]>;
  /** Called with all fetched batches before the first one is delivered. */
  fetched(batches: readonly FetchedBatch[]): void;
  /** Returns true if a failed join must not be retried. */
  cancelled(): boolean;
}

const hooks = new WeakMap<object, MembershipHooks>();

/** Registers the hooks for a consumer, by its cluster object, which is unique per consumer. */
export function onMembership(cluster: Cluster, membership: MembershipHooks): void {
  hooks.set(cluster, membership);
}

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue;

queuePrototype.scheduleCheckPendingRequests = function schedule(this: RequestQueue) {
  if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
  // A fixed delay, also while throttled, when kafkajs would compute the delay from the system clock.
  this.throttleCheckTimeoutId = setTimeout(() => {
    this.throttleCheckTimeoutId = null;
    this.checkPendingRequests();
  }, PENDING_CHECK_MS);
};

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as ConsumerGroup &
  Fetching &
  Heartbeating &
  Coordinated;
const { joinAndSync: originalJoin, fetch: originalFetch, heartbeat: originalHeartbeat } = groupPrototype;
const { recoverFromOffsetOutOfRange: originalRecovery, recoverFromFetch: originalFetchRecovery } = groupPrototype;

/**
 * Retries a failed join until it succeeds, except for the first one, which kafkajs handles. After another failed join,
 * kafkajs continues to fetch without joining. If the group is stable when its coordinator responds again, the member would
 * never rejoin, although `leaving` has ended its partitions.
 */
async function join(group: ConsumerGroup, membership: MembershipHooks | undefined): Promise<void> {
  for (;;) {
    try {
      return await originalJoin.call(group);
    } catch (fault) {
      const isFirst = group.generationId === null;
      const isPermanent = (fault as { retriable?: boolean }).retriable === false;
      if (membership === undefined || membership.cancelled() || isFirst || isPermanent) throw fault;
    }
    await delay(REJOIN_WAIT_MS);
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
  if (membership !== undefined && fault instanceof FetchCancelled) return;
  // The broker is removed, so that the next fetch reads the metadata again.
  if (fault instanceof BrokerTimeout) return;
  if (membership === undefined || !(fault instanceof TopicDeleted))
    return await originalFetchRecovery.call(this, fault);
  membership.outOfRange({ topic: fault.topic, partition: fault.partition });
};

// A frozen broker accepts connections. kafkajs repeats requests to it for up to five minutes, until it refreshes its
// metadata, and sends heartbeats to a lost coordinator forever.

const { KafkaJSConnectionError }: { KafkaJSConnectionError: ConnectionErrorClass } = require('kafkajs/src/errors');
const poolPrototype = require('kafkajs/src/network/connectionPool').prototype as BrokerConnections;
const { send: originalSend } = poolPrototype;

type ConnectionErrorClass = new (message: string, at: { broker: string; code: string }) => Error;

interface BrokerConnections {
  readonly host: string;
  readonly port: number;
  readonly pool: readonly {
    readonly socket?: Socket;
    rejectRequests(fault: Error): void;
    disconnect(): Promise<unknown>;
  }[];
  send(request: object): Promise<unknown>;
}

/** A connection error, so that kafkajs selects another broker. */
export class BrokerTimeout extends KafkaJSConnectionError {
  /** How long the request waited, in milliseconds, as in the error of kafkajs. */
  readonly pendingDuration: number;

  constructor({ host, port }: BrokerConnections, fault: RequestTimeout) {
    super(fault.message, { broker: `${host}:${port}`, code: 'ETIMEDOUT' });
    this.pendingDuration = fault.pendingDuration;
  }
}

interface RequestTimeout extends Error {
  readonly pendingDuration: number;
}

interface FoundBroker {
  readonly connectionPool: BrokerConnections;
}

interface Brokers {
  findBroker(at: { nodeId: string }): Promise<FoundBroker>;
  findConnectedBroker(): Promise<FoundBroker>;
  removeBroker(at: { host: string; port: number }): void;
}

const brokersPrototype = require('kafkajs/src/cluster/brokerPool').prototype as Brokers;
const { findBroker: originalFind, findConnectedBroker: originalFindConnected } = brokersPrototype;
const brokersOf = new WeakMap<BrokerConnections, Brokers>();

brokersPrototype.findBroker = async function findBroker(this: Brokers, at) {
  const broker = await originalFind.call(this, at);
  brokersOf.set(broker.connectionPool, this);
  return broker;
};

brokersPrototype.findConnectedBroker = async function findConnectedBroker(this: Brokers) {
  const broker = await originalFindConnected.call(this);
  brokersOf.set(broker.connectionPool, this);
  return broker;
};

/**
 * Closes all connections to a broker when one request times out, and removes the broker until the metadata is read again,
 * so that no other request waits for the broker.
 */
poolPrototype.send = async function send(this: BrokerConnections, request) {
  try {
    return await originalSend.call(this, request);
  } catch (fault) {
    if ((fault as Error).name !== 'KafkaJSRequestTimeoutError') throw fault;
    const timeout = new BrokerTimeout(this, fault as RequestTimeout);
    brokersOf.get(this)?.removeBroker(this);
    for (const connection of this.pool) {
      connection.rejectRequests(timeout);
      void connection.disconnect();
      connection.socket?.destroy();
    }
    throw timeout;
  }
};

/** Maximum size of one read from a socket. */
const READ_BYTES = 256 * 1024;
/** The value that kafkajs uses. */
const KEEP_ALIVE_DELAY_MS = 60_000;
const SIZE_BYTES = 4;
/** 64 times the size that a fetch requests. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Splits a byte stream into size-prefixed responses with one copy each. kafkajs 2.2.4 stores every chunk in a separate
 * buffer and concatenates the buffers, which took a fifth of the main thread's CPU time.
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

  /** @throws RangeError if a response size is invalid */
  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const target = this.#response ?? this.#size;
      const filled = this.#response === null ? this.#sizeBytes : this.#filled;
      const count = Math.min(target.length - filled, bytes.length - at);
      target.set(bytes.subarray(at, at + count), filled);
      at += count;
      if (this.#response === null) this.#sizeBytes += count;
      else this.#filled += count;
      if (filled + count === target.length) this.#complete();
    }
  }

  #complete(): void {
    if (this.#response === null) {
      const bytes = this.#size.readInt32BE(0);
      if (bytes <= 0 || bytes > RESPONSE_BYTES_MAX)
        throw new RangeError(`A broker sent an invalid response size: ${bytes} bytes.`);
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
 * Creates a socket factory whose sockets emit one response per `data` event.
 * @param onFault called with every socket fault, because kafkajs drops the error code
 */
export function createSocketFactory(onFault?: (fault: Error) => void): ISocketFactory {
  return ({ host, port, ssl, onConnect }: ISocketFactoryArgs): Socket => {
    const reader = new ResponseReader((response) => socket.emit('data', response));
    const onRead = (count: number, buffer: Uint8Array) => {
      try {
        reader.push(buffer.subarray(0, count));
      } catch (fault) {
        socket.destroy(fault as Error);
      }
      return true;
    };
    const onread = { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback: onRead };
    const socket = ssl
      ? connectTls({ host, port, ...toServerName(host), ...ssl, onread } as ConnectionOptions, onConnect)
      : connect({ host, port, onread }, onConnect);
    if (onFault !== undefined) socket.on('error', onFault);
    return socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS);
  };
}

/** The server name for TLS, which cannot be an IP address. */
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

// kafkajs measures durations with the system clock. If the clock is set back by an hour, kafkajs sends no heartbeats
// for an hour. If the clock is set forward, all requests in flight fail.

/** Monotonic time of the last heartbeat, and the system time that kafkajs stored for it. */
const heartbeats = new WeakMap<Heartbeating, { lastRequest: number; atMs: number }>();

groupPrototype.heartbeat = async function heartbeat(this: Heartbeating & Coordinated, options: { interval: number }) {
  const last = heartbeats.get(this);
  if (last === undefined || last.lastRequest !== this.lastRequest) recordHeartbeat(this);
  // Makes the heartbeat due, because kafkajs compares this value with the system clock.
  else if (performance.now() - last.atMs >= options.interval) this.lastRequest = 0;
  const before = this.lastRequest;
  try {
    await originalHeartbeat.call(this, options);
  } catch (fault) {
    if (!(fault instanceof KafkaJSConnectionError)) throw fault;
    // The next coordinator knows the members, so they keep their generation.
    this.coordinator = await (this.cluster as BrokerCluster).findGroupCoordinator(this);
    this.offsetManager.coordinator = this.coordinator;
  }
  if (this.lastRequest !== before) recordHeartbeat(this);
};

function recordHeartbeat(group: Heartbeating): void {
  heartbeats.set(group, { lastRequest: group.lastRequest, atMs: performance.now() });
}

const { sendSocketRequest, destroy } = queuePrototype;
/** Monotonic send time by request, and time of the next check by queue. */
const sentAtMs = new WeakMap<TimedRequest, number>();
const checkAtMs = new WeakMap<RequestQueue, number>();

/** Sets a timer for the next request that can time out. kafkajs checks every connection ten times per second. */
function scheduleTimeoutCheck(queue: RequestQueue): void {
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
  queue.requestTimeoutIntervalId = setTimeout(() => failTimedOutRequests(queue), Math.max(1, Math.ceil(dueMs - nowMs)));
}

function failTimedOutRequests(queue: RequestQueue): void {
  const nowMs = performance.now();
  for (const request of [...queue.inflight.values()])
    if (nowMs - (sentAtMs.get(request) ?? nowMs) >= request.requestTimeout) request.timeoutRequest();
  scheduleTimeoutCheck(queue);
}

queuePrototype.scheduleRequestTimeoutCheck = function schedule(this: RequestQueue) {
  if (this.enforceRequestTimeout) scheduleTimeoutCheck(this);
};

queuePrototype.sendSocketRequest = function send(this: RequestQueue, request: TimedRequest) {
  sentAtMs.set(request, performance.now());
  sendSocketRequest.call(this, request);
  const dueMs = performance.now() + request.requestTimeout;
  if (this.enforceRequestTimeout && dueMs < (checkAtMs.get(this) ?? Number.POSITIVE_INFINITY))
    scheduleTimeoutCheck(this);
};

queuePrototype.destroy = function end(this: RequestQueue) {
  destroy.call(this);
  this.requestTimeoutIntervalId = null;
  checkAtMs.delete(this);
};
