/**
 * Two of the places where kafkajs 2.2.4 is changed; record-decoding.ts and response-socket.ts are the others. They reach
 * into its source, so the version is pinned and each has a contract test that fails when what it relies on is another.
 *
 * 1. `RequestQueue.scheduleCheckPendingRequests` arms a timer for `-1 - now` milliseconds again and again, which Node
 *    runs every millisecond: 810 wake-ups a second in an idle process. Here it is armed only when something waits.
 * 2. There is no call before partitions are given up and none after they are assigned. `ConsumerGroup.joinAndSync` is
 *    the one way into a generation; here it waits for ours around it. And it does not fail while the group has forgotten
 *    this member: kafkajs would then fetch for ever without a heartbeat, and so never hear that it must join again.
 */
import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from 'kafkajs';

const require = createRequire(import.meta.url);

/** A coordinator that moves, or loads its groups, needs a moment. */
const JOIN_AGAIN_MS = 200;
/** How soon a queue with something waiting looks again, as in the original. */
const PENDING_CHECK_MS = 10;

interface RequestQueue {
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  pending: unknown[];
  checkPendingRequests(): void;
}

/** The offsets of one generation: commits through it stay refused when the generation is over. */
export interface GenerationOffsets {
  commitOffsets(offsets: {
    topics: { topic: string; partitions: { partition: number; offset: string; metadata: string }[] }[];
  }): Promise<void>;
  getCoordinator(): Promise<{
    offsetFetch(request: {
      groupId: string;
      topics: { topic: string; partitions: { partition: number }[] }[];
    }): Promise<{
      responses: { topic: string; partitions: { partition: number; offset: string; metadata: string | null }[] }[];
    }>;
  }>;
  /** Sets the position behind `offset`. */
  resolveOffset(position: { topic: string; partition: number; offset: string }): void;
}

/** What is used of kafkajs's ConsumerGroup. */
export interface ConsumerGroup {
  readonly cluster: object;
  readonly memberId: string | null;
  readonly generationId: number | null;
  readonly offsetManager: GenerationOffsets;
  assigned(): { topic: string; partitions: number[] }[];
  pause(partitions: { topic: string; partitions: number[] }[]): void;
  resume(partitions: { topic: string; partitions: number[] }[]): void;
  joinAndSync(): Promise<void>;
}

export interface MembershipHooks {
  /** Awaited before the group is joined again: commits of the old generation are still accepted. */
  leaving(group: ConsumerGroup): Promise<void>;
  /** Awaited after the assignment is known and before anything is fetched. */
  joined(group: ConsumerGroup): Promise<void>;
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
  if (this.throttleCheckTimeoutId !== null) return;
  const throttledMs = this.throttledUntil - Date.now();
  if (throttledMs <= 0 && this.pending.length === 0) return;
  this.throttleCheckTimeoutId = setTimeout(
    () => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    },
    throttledMs > 0 ? throttledMs : PENDING_CHECK_MS,
  );
};

const groupPrototype = require('kafkajs/src/consumer/consumerGroup').prototype as ConsumerGroup;
const originalJoin = groupPrototype.joinAndSync;

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
