/**
 * Four of the places where kafkajs 2.2.4 is changed; aborted-records.ts, fetch-pace.ts, kafkajs-clock.ts,
 * record-decoding.ts, response-socket.ts and topic-ids.ts are the others. They reach into its source, so the version is pinned and each has a contract test that fails when what it relies on is another.
 *
 * 1. `RequestQueue.scheduleCheckPendingRequests` arms a timer for `-1 - now` milliseconds again and again, which Node
 *    runs every millisecond: 810 wake-ups a second in an idle process. Here it is armed only when something waits.
 * 2. There is no call before partitions are given up and none after they are assigned. `ConsumerGroup.joinAndSync` is
 *    the one way into a generation; here it waits for ours around it. And it does not fail while the group has forgotten
 *    this member: kafkajs would then fetch for ever without a heartbeat, and so never hear that it must join again.
 * 3. Asked for an offset that a log does not have, it commits the default offset by itself, without our metadata, and
 *    goes on from there. `ConsumerGroup.recoverFromOffsetOutOfRange` is the one way there; here the owner decides. And
 *    that a topic is gone it does not know: `recoverFromFetch` is where every fault of a fetch passes.
 * 4. `ConsumerGroup.fetch` is where every fetched batch passes, also those without a record for us; and how long the
 *    broker may wait for a record is decided for each of them.
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
  /** The log has no such offset, or the topic itself is gone. Called with every fetch until the partition is paused. */
  outOfRange(at: { topic: string; partition: number }): void;
  /** How long the next fetch may wait for a record, in milliseconds. */
  fetchWaitMs(group: ConsumerGroup): number;
  /** Resolves with what the fetch brings, or with nothing when nobody waits for it any more. */
  awaitFetch(fetching: Promise<FetchedBatch[]>): Promise<FetchedBatch[]>;
  /** Told of what was fetched before any of it is handed over. */
  fetched(batches: readonly FetchedBatch[]): void;
  /** True once nobody wants the membership any more: a join that fails is not tried again. */
  cancelled(): boolean;
}

const hooks = new WeakMap<object, MembershipHooks>();

/** Registers for the memberships of one consumer, known by its cluster object (kafkajs makes one for each). */
export function onMembership(cluster: Cluster, membership: MembershipHooks): void {
  hooks.set(cluster, membership);
}

const queuePrototype = require('kafkajs/src/network/requestQueue').prototype as RequestQueue & {
  scheduleCheckPendingRequests(): void;
};

queuePrototype.scheduleCheckPendingRequests = function schedule(this: RequestQueue) {
  if (this.throttleCheckTimeoutId !== null || this.pending.length === 0) return;
  // Also while it is throttled: reckoned with the wall clock's end of that, a clock set back would make it wait as long.
  this.throttleCheckTimeoutId = setTimeout(() => {
    this.throttleCheckTimeoutId = null;
    this.checkPendingRequests();
  }, PENDING_CHECK_MS);
};

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as ConsumerGroup & Fetching;
const { joinAndSync: originalJoin, fetch: originalFetch } = groupPrototype;
const { recoverFromOffsetOutOfRange: originalRecovery, recoverFromFetch: originalFetchRecovery } = groupPrototype;

/**
 * Joins until it succeeds or fails for good, when the member was forgotten. A first join and one that still has its id
 * may fail: kafkajs starts the consumer again after the one, and its heartbeat finds out about the other.
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
