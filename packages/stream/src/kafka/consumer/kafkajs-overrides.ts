import { createRequire } from 'node:module';
import { connect, isIP, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Cluster, ISocketFactory, ISocketFactoryArgs } from 'kafkajs';
import { TopicGone } from '../../partitions/log-partition.ts';
import { FetchOver } from './fetch-pace.ts';
import type { FetchedRecords } from './record-decoding.ts';

/**
 * Five of the changes to kafkajs 2.2.4. The others are in fetch-pace.ts, ../kafkajs-clock.ts,
 * record-decoding.ts and topic-id-wire.ts. They depend on its source, so its version is pinned, and
 * each change has a contract test that fails when that source differs.
 *
 * 1. `RequestQueue.scheduleCheckPendingRequests` sets a timer with a negative delay again and again, which Node runs
 * every millisecond: 810 wake-ups a second in an idle process. Here it is set only when a request waits.
 * 2. There is no hook before partitions are revoked or after they are assigned. `ConsumerGroup.joinAndSync` is the only
 * way into a generation, so our hooks run around it. It also no longer fails when the group has forgotten this member:
 * kafkajs would then fetch forever without a heartbeat, and never learn that it must join again.
 * 3. For an offset out of range, it commits the default offset without our metadata and continues there.
 * `ConsumerGroup.recoverFromOffsetOutOfRange` is the only way there; here the owner decides instead. kafkajs also does
 * not notice that a topic is gone; every fault of a fetch passes `recoverFromFetch`.
 * 4. `ConsumerGroup.fetch` sees every fetched batch, also those without a record for us. It also sets how long the
 * broker may wait for a record.
 * 5. The socket factory at the end of this file reads a large answer of a broker without a copy for each of its pieces.
 */

const require = createRequire(import.meta.url);

/** A coordinator that has just changed, or is still loading its groups, needs a moment. */
const JOIN_AGAIN_MS = 200;
/** How soon a queue with waiting requests checks again, as in the original. */
const PENDING_CHECK_MS = 10;

interface RequestQueue {
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  pending: unknown[];
  checkPendingRequests(): void;
}

/** A broker that stores the committed offsets of groups. */
export interface Coordinator {
  offsetFetch(request: { groupId: string; topics: { topic: string; partitions: { partition: number }[] }[] }): Promise<{
    responses: { topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[];
  }>;
}

/** The offsets of one generation of a group. When the generation is over, commits through this object stay refused. */
export interface GenerationOffsets {
  commitOffsets(offsets: {
    topics: { topic: string; partitions: { partition: number; offset: string; metadata: string }[] }[];
  }): Promise<void>;
  /** Sets the position to the offset after `offset`. */
  resolveOffset(position: { topic: string; partition: number; offset: string }): void;
}

/** What is used of kafkajs's ConsumerGroup. */
export interface ConsumerGroup {
  readonly cluster: object;
  readonly memberId: string | null;
  readonly generationId: number | null;
  /** For the next fetch. */
  maxWaitTime: number;
  readonly offsetManager: GenerationOffsets;
  assigned(): { topic: string; partitions: number[] }[];
  paused(): readonly object[];
  pause(partitions: { topic: string; partitions: number[] }[]): void;
  resume(partitions: { topic: string; partitions: number[] }[]): void;
  joinAndSync(): Promise<void>;
}

/** The members of a kafkajs batch that are used here: everything that one fetch brought of one partition. */
export interface FetchedBatch {
  readonly topic: string;
  readonly partition: number;
  /** The offset that the fetch asked for. */
  readonly fetchedOffset: string;
  readonly rawMessages: FetchedRecords;
}

interface Fetching {
  fetch(nodeId: number): Promise<FetchedBatch[]>;
  recoverFromOffsetOutOfRange(fault: { topic: string; partition: number }): Promise<void>;
  recoverFromFetch(fault: unknown): Promise<void>;
}

export interface MembershipHooks {
  /** Awaited before the member joins the group again: until then the old generation's commits are still accepted. */
  leaving(group: ConsumerGroup): Promise<void>;
  /** Awaited when the assignment is known, before anything is fetched. */
  joined(group: ConsumerGroup): Promise<void>;
  /** Called when the log lacks the offset or the topic is gone, with every fetch until the partition is paused. */
  outOfRange(at: { topic: string; partition: number }): void;
  /** How long the next fetch may wait for a record, in milliseconds. */
  fetchWaitMs(group: ConsumerGroup): number;
  /** Resolves with the result of the fetch, or with nothing when it is not needed any more. */
  awaitFetch(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]>;
  /** Called with everything that was fetched before any of it is delivered. */
  fetched(batches: readonly FetchedBatch[]): void;
  /** True when the membership is over: a failed join is then not repeated. */
  cancelled(): boolean;
}

const hooks = new WeakMap<object, MembershipHooks>();

/** Registers hooks for one consumer, identified by its cluster object: kafkajs creates one per consumer. */
export function onMembership(cluster: Cluster, membership: MembershipHooks): void {
  hooks.set(cluster, membership);
}

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue & {
  scheduleCheckPendingRequests(): void;
};

queuePrototype.scheduleCheckPendingRequests = function schedule(this: RequestQueue) {
  if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
  // The same delay while throttled: kafkajs would compute it by the wall clock, and wait as long as that was set back.
  this.throttleCheckTimeoutId = setTimeout(() => {
    this.throttleCheckTimeoutId = null;
    this.checkPendingRequests();
  }, PENDING_CHECK_MS);
};

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as ConsumerGroup & Fetching;
const { joinAndSync: originalJoin, fetch: originalFetch } = groupPrototype;
const { recoverFromOffsetOutOfRange: originalRecovery, recoverFromFetch: originalFetchRecovery } = groupPrototype;

/**
 * Joins. If the group has forgotten the member, a failed join is repeated. A first join may fail, because kafkajs then
 * restarts the consumer. So may one that still has its member id, because its heartbeat notices.
 */
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

/**
 * Assembles answers of brokers with one copy. kafkajs 2.2.4 keeps every chunk of the socket in its own buffer of 64 KiB
 * and joins them when an answer is complete: a fifth of the writer's main thread, and as much again for garbage
 * collection. Here the socket reads into one buffer that is reused, and each answer is copied into its own buffer.
 *
 * `Connection.processData` is changed as well: it joins each answer with the rest of the previous one, which is empty
 * here, and would copy the answer again. The version is pinned, and a contract test fails when its source is another.
 */

/** As much as one read can take from a full socket, and small enough for the processor's cache. */
const READ_BYTES = 256 * 1024;
/** The same value as in kafkajs. */
const KEEP_ALIVE_DELAY_MS = 60_000;
/** An answer begins with the number of bytes that follow. */
const SIZE_BYTES = 4;
/** Sixty-four times what one fetch asks for. A larger number cannot be the size of a broker's answer. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024;

/** Splits a stream of bytes into answers, each with its size in front. */
export class ResponseReader {
  readonly #onResponse: (response: Buffer) => void;
  readonly #size = Buffer.alloc(SIZE_BYTES);
  #sizeBytes = 0;
  #response: Buffer | null = null;
  #filled = 0;

  constructor(onResponse: (response: Buffer) => void) {
    this.#onResponse = onResponse;
  }

  /**
   * Copies the bytes that came next.
   * @throws RangeError when they contain an impossible size
   */
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

  /** The size is known: the answer begins. Or the answer is whole. */
  #turn(): void {
    if (this.#response === null) {
      const bytes = this.#size.readInt32BE(0);
      if (bytes <= 0 || bytes > RESPONSE_BYTES_MAX)
        throw new RangeError('a broker announces an answer of no such size');
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
 * Creates the function that connects to brokers. Each `data` event of its sockets is one whole answer, with TLS and
 * without.
 * @param onFault called with every fault of a socket: kafkajs keeps its message but loses its code
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

/**
 * TLS gets the name of a host, so that a server with several certificates sends the right one. An IP address must not
 * be sent.
 */
function toServerName(host: string): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {};
}

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
