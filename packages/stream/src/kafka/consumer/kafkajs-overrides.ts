/**
 * Four of the changes to kafkajs 2.2.4. The others are in aborted-records.ts, fetch-pace.ts, ../kafkajs-clock.ts,
 * record-decoding.ts, response-socket.ts and topic-ids.ts. They depend on its source, so its version is pinned, and
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
 */
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from 'kafkajs';
import { LogGone } from '../../partitions/log-partition.ts';
import { FetchOver } from './fetch-pace.ts';
import type { FetchedRecords } from './record-decoding.ts';

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
  if (membership === undefined || !(fault instanceof LogGone)) return await originalFetchRecovery.call(this, fault);
  membership.outOfRange({ topic: fault.topic, partition: fault.partition });
};
