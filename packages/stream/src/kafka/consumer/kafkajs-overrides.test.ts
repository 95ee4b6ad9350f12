import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it, vi } from 'vitest';
import { FetchOver } from './fetch-pace.ts';
import { type ConsumerGroup, onMembership } from './kafkajs-overrides.ts';

const require = createRequire(import.meta.url);

it('rests on kafkajs 2.2.4: another version needs these overrides looked at again', () => {
  expect(require('kafkajs/package.json').version).toBe('2.2.4');
});

it('leaves no timer behind when nothing waits, and still runs what waits', () => {
  vi.useFakeTimers();
  try {
    const RequestQueue = require('kafkajs/src/network/requestQueue');
    const quiet = () => {};
    const queue = new RequestQueue({
      maxInFlightRequests: 1,
      requestTimeout: 1_000,
      enforceRequestTimeout: false,
      clientId: 'test',
      broker: 'test',
      logger: { debug: quiet, error: quiet, warn: quiet, info: quiet },
    });
    queue.checkPendingRequests();
    expect(vi.getTimerCount()).toBe(0);
    const sent: number[] = [];
    const push = (correlationId: number) =>
      queue.push({
        entry: { correlationId, reject: quiet, resolve: quiet },
        expectResponse: true,
        requestTimeout: null,
        sendRequest: () => sent.push(correlationId),
      });
    queue.maybeThrottle(50);
    push(1);
    expect(sent).toEqual([]);
    vi.advanceTimersByTime(60);
    expect(sent).toEqual([1]);
    push(2);
    queue.fulfillRequest({ correlationId: 1, payload: Buffer.alloc(0), size: 0 });
    vi.advanceTimersByTime(20);
    expect(sent).toEqual([1, 2]);
    queue.fulfillRequest({ correlationId: 2, payload: Buffer.alloc(0), size: 0 });
    vi.advanceTimersByTime(20);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

const unused = {
  outOfRange: () => {},
  fetchWaitMs: () => 0,
  awaitFetch: async <T>(of: Promise<T>) => of,
  fetched: () => {},
};

it('waits for the owner before it joins a group again, and before anything is fetched', async () => {
  const ConsumerGroupClass = require('kafkajs/src/consumer/consumerGroup');
  const steps: string[] = [];
  const cluster = {};
  const group = Object.create(ConsumerGroupClass.prototype);
  // The original runs its join and sync inside `retrier`: this is where the requests go out.
  Object.assign(group, {
    cluster,
    retrier: async () => {
      steps.push('join and sync');
    },
  });
  const wait = async (step: string) => {
    await new Promise((resolve) => setImmediate(resolve));
    steps.push(step);
  };
  onMembership(cluster as Parameters<typeof onMembership>[0], {
    leaving: () => wait('drained'),
    joined: () => wait('assigned'),
    cancelled: () => false,
    ...unused,
  });
  await (group as ConsumerGroup).joinAndSync();
  expect(steps).toEqual(['drained', 'join and sync', 'assigned']);
});

/** A group whose join fails `failures` times; its id and generation as kafkajs leaves them. */
function openFailing(failures: number, ids: { memberId: string | null; generationId: number | null }) {
  const ConsumerGroupClass = require('kafkajs/src/consumer/consumerGroup');
  const state = { joins: 0, assigned: 0, cancelled: false };
  const retrier = async () => {
    state.joins += 1;
    if (state.joins <= failures) throw Object.assign(new Error('not the coordinator'), { retriable: true });
  };
  const group: ConsumerGroup = Object.assign(Object.create(ConsumerGroupClass.prototype), {
    cluster: {},
    retrier,
    ...ids,
  });
  onMembership(group.cluster as Parameters<typeof onMembership>[0], {
    leaving: async () => {},
    joined: async () => {
      state.assigned += 1;
    },
    cancelled: () => state.cancelled,
    ...unused,
  });
  return { group, state };
}

it('joins again until it succeeds when the group has forgotten the member, who would never hear of it otherwise', async () => {
  const { group, state } = openFailing(2, { memberId: null, generationId: 7 });
  await group.joinAndSync();
  expect(state).toMatchObject({ joins: 3, assigned: 1 });
});

it('leaves a failed join to kafkajs at the start, and while the member still has its id', async () => {
  for (const ids of [
    { memberId: null, generationId: null },
    { memberId: 'member', generationId: 7 },
  ]) {
    const { group, state } = openFailing(1, ids);
    await expect(group.joinAndSync()).rejects.toThrow('not the coordinator');
    expect(state).toMatchObject({ joins: 1, assigned: 0 });
  }
});

it('does not join again once it is closing', async () => {
  const { group, state } = openFailing(1, { memberId: null, generationId: 7 });
  state.cancelled = true;
  await expect(group.joinAndSync()).rejects.toThrow('not the coordinator');
  expect(state.joins).toBe(1);
});

it('leaves an offset that a log does not have to the owner: kafkajs commits nothing of its own', async () => {
  const ConsumerGroupClass = require('kafkajs/src/consumer/consumerGroup');
  const asked: unknown[] = [];
  const commits: unknown[] = [];
  const cluster = {};
  const group = Object.assign(Object.create(ConsumerGroupClass.prototype), {
    cluster,
    logger: { error: () => {} },
    preferredReadReplicasPerTopicPartition: {},
    offsetManager: { setDefaultOffset: async (at: unknown) => void commits.push(at) },
  });
  const fault = Object.assign(new Error('no such offset'), {
    name: 'KafkaJSOffsetOutOfRange',
    topic: 'topic',
    partition: 3,
  });
  // Without an owner it does: this is what the override is for, and the test below it would otherwise prove nothing.
  await group.recoverFromFetch(fault);
  expect(commits).toEqual([{ topic: 'topic', partition: 3 }]);
  onMembership(cluster as Parameters<typeof onMembership>[0], {
    leaving: async () => {},
    joined: async () => {},
    cancelled: () => false,
    ...unused,
    outOfRange: (at) => void asked.push(at),
  });
  await group.recoverFromFetch(fault);
  expect(asked).toEqual([{ topic: 'topic', partition: 3 }]);
  expect(commits).toHaveLength(1);
});

it('has no other way to a commit of its own than that one', () => {
  const source = readFileSync(require.resolve('kafkajs/src/consumer/consumerGroup'), 'utf8');
  const manager = readFileSync(require.resolve('kafkajs/src/consumer/offsetManager/index.js'), 'utf8');
  expect(source.match(/setDefaultOffset/g)).toHaveLength(1);
  // In `setDefaultOffset`, in `seek` behind `if (!this.autoCommit)`, and in `commitOffsets`, which is ours.
  expect(manager.match(/coordinator\.offsetCommit\(/g)).toHaveLength(3);
});

it('reports every fetched batch before it is delivered, asks how long each fetch may wait, and leaves no fetch open at its end', async () => {
  const ConsumerGroupClass = require('kafkajs/src/consumer/consumerGroup');
  let isOver = false;
  const waits: number[] = [];
  const cluster = {
    refreshMetadataIfNecessary: async () => {},
    findBroker: async () => ({
      fetch: async ({ maxWaitTime }: { maxWaitTime: number }) => {
        waits.push(maxWaitTime);
        if (isOver) throw new FetchOver();
        return { responses: [{ topicName: 'topic', partitions: [{ partition: 0, messages: [] }] }] };
      },
    }),
  };
  const told: string[] = [];
  const group = Object.assign(Object.create(ConsumerGroupClass.prototype), {
    cluster,
    checkForStaleAssignment: () => {},
    seekOffsets: async () => {},
    preferredReadReplicasPerTopicPartition: {},
    filterPartitionsByNode: () => [{ topic: 'topic', partitions: [0] }],
    getActiveTopicPartitions: () => ({ topic: new Set([0]) }),
    subscriptionState: { assigned: () => [], isPaused: () => false },
    seekOffset: { has: () => false },
    offsetManager: { committedOffsets: () => ({ topic: { 0: '7' } }), nextOffset: () => 7 },
  });
  onMembership(cluster as unknown as Parameters<typeof onMembership>[0], {
    leaving: async () => {},
    joined: async () => {},
    cancelled: () => false,
    ...unused,
    fetchWaitMs: () => 77 + waits.length,
    fetched: (batches) => {
      for (const { topic, partition, rawMessages } of batches) told.push(`${topic}/${partition} ${rawMessages.length}`);
    },
  });
  expect(await group.fetch(1)).toHaveLength(1);
  expect(told).toEqual(['topic/0 0']);
  isOver = true;
  expect(await group.fetch(1)).toEqual([]);
  expect(waits).toEqual([77, 78]);
});
