import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import type { ISocketFactoryArgs } from 'kafkajs';
import { afterEach, expect, it, vi } from 'vitest';
import { FetchCancelled } from './fetch-pace.ts';
import {
  BrokerTimeout,
  type ConsumerGroup,
  createSocketFactory,
  onMembership,
  ResponseReader,
} from './kafkajs-overrides.ts';

const require = createRequire(import.meta.url);

it('the kafkajs overrides are tested with version 2.2.4', () => {
  expect(require('kafkajs/package.json').version).toBe('2.2.4');
});

const RequestQueue = require('kafkajs/src/network/requestQueue');
const LOGGER = { debug: () => {}, info: () => {}, error: () => {}, warn: () => {} };
afterEach(() => void vi.useRealTimers());

const openQueue = (options: object) =>
  new RequestQueue({
    maxInFlightRequests: 1,
    requestTimeout: 1_000,
    clientId: 'test',
    broker: 'test',
    logger: LOGGER,
    ...options,
  });

it('a kafkajs request queue uses a timer only while a request is waiting', () => {
  vi.useFakeTimers();
  const queue = openQueue({ enforceRequestTimeout: false });
  queue.checkPendingRequests();
  expect(vi.getTimerCount()).toBe(0);
  const sent: number[] = [];
  const push = (correlationId: number) =>
    queue.push({
      entry: { correlationId, reject: () => {}, resolve: () => {} },
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
});

type Hooks = Parameters<typeof onMembership>[1];

const ConsumerGroupClass = require('kafkajs/src/consumer/consumerGroup');

function openGroup(members: object, hooks: Partial<Hooks>) {
  const group = Object.assign(Object.create(ConsumerGroupClass.prototype), { cluster: {}, ...members });
  onMembership(group.cluster, {
    leaving: async () => {},
    joined: async () => {},
    cancelled: () => false,
    outOfRange: () => {},
    fetchWaitMs: () => 0,
    awaitFetch: async (fetching) => fetching,
    fetched: () => {},
    ...hooks,
  });
  return group;
}

it('a group awaits its hooks before a join and before the first fetch', async () => {
  const steps: string[] = [];
  const wait = async (step: string) => {
    await new Promise((resolve) => setImmediate(resolve));
    steps.push(step);
  };
  // The original method sends its join and sync requests inside `retrier`.
  const retrier = async () => void steps.push('join and sync');
  const group = openGroup({ retrier }, { leaving: () => wait('drained'), joined: () => wait('assigned') });
  await group.joinAndSync();
  expect(steps).toEqual(['drained', 'join and sync', 'assigned']);
});

function openFailingGroup(failures: number, ids: { memberId: string | null; generationId: number | null }) {
  const state = { joins: 0, assigned: 0, cancelled: false };
  const retrier = async () => {
    state.joins += 1;
    if (state.joins <= failures) throw Object.assign(new Error('not the coordinator'), { retriable: true });
  };
  const joined = async () => {
    state.assigned++;
  };
  const group: ConsumerGroup = openGroup({ retrier, ...ids }, { joined, cancelled: () => state.cancelled });
  return { group, state };
}

it.each([
  ['that was removed from its group', null],
  ['whose coordinator is moving, although its generation may remain stable', 'member'],
])('a member %s rejoins until the join succeeds', async (_, memberId) => {
  const { group, state } = openFailingGroup(2, { memberId, generationId: 7 });
  await group.joinAndSync();
  expect(state).toMatchObject({ joins: 3, assigned: 1 });
});

it.each([
  ['at startup', { memberId: null, generationId: null }, false],
  ['by a closing member', { memberId: null, generationId: 7 }, true],
])('a failed join %s is handled by kafkajs', async (_, ids, cancelled) => {
  const { group, state } = openFailingGroup(1, ids);
  state.cancelled = cancelled;
  await expect(group.joinAndSync()).rejects.toThrow('not the coordinator');
  expect(state).toMatchObject({ joins: 1, assigned: 0 });
});

it('an offset out of range is handled by the hooks, and kafkajs commits nothing', async () => {
  const [reported, commits]: unknown[][] = [[], []];
  const members = {
    logger: { error: () => {} },
    preferredReadReplicasPerTopicPartition: {},
    offsetManager: { setDefaultOffset: async (at: unknown) => void commits!.push(at) },
  };
  const at = { topic: 'topic', partition: 3 };
  const fault = Object.assign(new Error('no such offset'), { name: 'KafkaJSOffsetOutOfRange', ...at });
  // Without hooks, kafkajs commits a default offset.
  await Object.assign(Object.create(ConsumerGroupClass.prototype), { cluster: {}, ...members }).recoverFromFetch(fault);
  expect(commits).toEqual([at]);
  const group = openGroup(members, { outOfRange: (missing) => void reported!.push(missing) });
  await group.recoverFromFetch(fault);
  expect(reported).toEqual([at]);
  expect(commits).toHaveLength(1);
});

it('kafkajs commits offsets only in the three known code paths', () => {
  const source = readFileSync(require.resolve('kafkajs/src/consumer/consumerGroup'), 'utf8');
  const manager = readFileSync(require.resolve('kafkajs/src/consumer/offsetManager/index.js'), 'utf8');
  expect(source.match(/setDefaultOffset/g)).toHaveLength(1);
  // In `setDefaultOffset`, in `seek` after `if (!this.autoCommit)`, and in `commitOffsets`, which only Playline calls.
  expect(manager.match(/coordinator\.offsetCommit\(/g)).toHaveLength(3);
});

it('a group reports fetched batches before their delivery, limits each wait, and can cancel its fetches', async () => {
  let isCancelled = false;
  const waits: number[] = [];
  const cluster = {
    refreshMetadataIfNecessary: async () => {},
    findBroker: async () => ({
      fetch: async ({ maxWaitTime }: { maxWaitTime: number }) => {
        waits.push(maxWaitTime);
        if (isCancelled) throw new FetchCancelled();
        return { responses: [{ topicName: 'topic', partitions: [{ partition: 0, messages: [] }] }] };
      },
    }),
  };
  const reported: string[] = [];
  const members = {
    cluster,
    checkForStaleAssignment: () => {},
    seekOffsets: async () => {},
    preferredReadReplicasPerTopicPartition: {},
    filterPartitionsByNode: () => [{ topic: 'topic', partitions: [0] }],
    getActiveTopicPartitions: () => ({ topic: new Set([0]) }),
    subscriptionState: { assigned: () => [], isPaused: () => false },
    seekOffset: { has: () => false },
    offsetManager: { committedOffsets: () => ({ topic: { 0: '7' } }), nextOffset: () => 7 },
  };
  const fetched: Hooks['fetched'] = (batches) => {
    for (const { topic, partition, rawMessages } of batches)
      reported.push(`${topic}/${partition} ${rawMessages.length}`);
  };
  const group = openGroup(members, { fetchWaitMs: () => 77 + waits.length, fetched });
  expect(await group.fetch(1)).toHaveLength(1);
  expect(reported).toEqual(['topic/0 0']);
  isCancelled = true;
  expect(await group.fetch(1)).toEqual([]);
  expect(waits).toEqual([77, 78]);
});

const Broker = require('kafkajs/src/broker');
const BrokerPool = require('kafkajs/src/cluster/brokerPool');
const ConnectionPool = require('kafkajs/src/network/connectionPool');
const Encoder = require('kafkajs/src/protocol/encoder');

it('a broker that does not respond in time loses all its connections and is removed from the metadata', async () => {
  const peers: Promise<unknown>[] = [];
  const server = createServer((peer) => void peers.push(once(peer.resume(), 'close'))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const address = { host: '127.0.0.1', port };
  const logger = { namespace: () => LOGGER };
  const limits = { connectionTimeout: 5_000, requestTimeout: 50 };
  const pool = new ConnectionPool({ ...address, ...limits, logger, socketFactory: createSocketFactory() });
  const brokers = new BrokerPool({ connectionPoolBuilder: {}, logger });
  brokers.brokers = { 1: new Broker({ connectionPool: pool, logger, nodeId: 1, versions: {} }) };
  brokers.seedBroker = brokers.brokers[1];
  await brokers.findBroker({ nodeId: 1 });
  await pool.getConnection(1);
  const request = { apiName: 'Metadata', apiKey: 3, apiVersion: 1, encode: async () => new Encoder() };
  const fault: unknown = await pool.send({ request, response: {} }).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(BrokerTimeout);
  expect(fault).toMatchObject({ name: 'KafkaJSConnectionError', broker: `127.0.0.1:${port}` });
  await Promise.all(peers);
  expect([peers.length, pool.isConnected()]).toEqual([2, false]);
  server.close();
  expect(brokers.getNodeIds()).toEqual([]);
  await openGroup({ cluster: {} }, {}).recoverFromFetch(fault);
});

it('a member whose coordinator is lost continues in its generation with the next coordinator', async () => {
  const sent: string[] = [];
  const createCoordinator = (name: string, fault?: Error) => ({
    heartbeat: async () => {
      sent.push(name);
      if (fault !== undefined) throw fault;
    },
  });
  const { KafkaJSConnectionError, KafkaJSProtocolError } = require('kafkajs/src/errors');
  const lost = createCoordinator('lost', new KafkaJSConnectionError('Connection error'));
  const next = createCoordinator('next', new KafkaJSProtocolError({ type: 'REBALANCE_IN_PROGRESS' }));
  const logger = { namespace: () => logger, ...LOGGER };
  const group = new ConsumerGroupClass({
    logger,
    cluster: { findGroupCoordinator: async () => next },
    topics: [],
    topicConfigurations: {},
    instrumentationEmitter: { emit: () => {} },
  });
  Object.assign(group, {
    memberId: 'member',
    generationId: 7,
    coordinator: lost,
    offsetManager: { coordinator: lost },
  });
  await group.heartbeat({ interval: 0 });
  expect([group.coordinator, group.offsetManager.coordinator]).toEqual([next, next]);
  await expect(group.heartbeat({ interval: 0 })).rejects.toMatchObject({ type: 'REBALANCE_IN_PROGRESS' });
  expect(sent).toEqual(['lost', 'next']);
});

const { prototype } = require('kafkajs/src/network/connection');

function frame(content: Uint8Array): Buffer {
  const size = Buffer.alloc(4);
  size.writeInt32BE(content.length);
  return Buffer.concat([size, content]);
}

function splitAt(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const sorted = [0, ...positions.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b)];
  return sorted.map((from, index) => bytes.subarray(from, sorted[index + 1] ?? bytes.length));
}

const contents = fc.array(fc.uint8Array({ minLength: 1, maxLength: 5_000 }), { minLength: 1, maxLength: 8 });

it('the response reader supports any chunk boundaries and reused chunk buffers', () => {
  fc.assert(
    fc.property(contents, fc.array(fc.nat(), { maxLength: 40 }), (responses, positions) => {
      const read: Buffer[] = [];
      const reader = new ResponseReader((response) => read.push(response));
      for (const chunk of splitAt(Buffer.concat(responses.map(frame)), positions)) {
        const reused = Buffer.from(chunk);
        reader.push(reused);
        reused.fill(0xee);
      }
      expect(read).toEqual(responses.map(frame));
    }),
  );
});

it.each([0, -1, 0x7fffffff])('a response size of %i fails the connection', async (size) => {
  const sizePrefix = Buffer.alloc(4);
  sizePrefix.writeInt32BE(size);
  const { socket, close } = await connectTo((peer) => peer.write(sizePrefix));
  const [error] = await once(socket, 'error');
  expect(error).toBeInstanceOf(RangeError);
  close();
});

it('a socket returns complete responses, including responses larger than its buffer', async () => {
  const large = Buffer.alloc(1_000_000, 'response');
  const { socket, close } = await connectTo((peer) => peer.write(Buffer.concat([frame(large), frame(large)])));
  const received: Buffer[] = [];
  await new Promise<void>((resolve) => {
    socket.on('data', (data: Buffer) => {
      received.push(data);
      if (received.length === 2) resolve();
    });
  });
  expect(received).toEqual([frame(large), frame(large)]);
  close();
});

it('kafkajs forwards complete consecutive responses without copying them', () => {
  const payloads: { correlationId: number; payload: Buffer }[] = [];
  const connection = Object.assign(Object.create(prototype), {
    chunks: [],
    bytesBuffered: 0,
    bytesNeeded: 4,
    authHandlers: null,
    requestQueue: { fulfillRequest: (response: (typeof payloads)[number]) => payloads.push(response) },
  });
  const responses = [1, 2, 3].map((correlationId) => frame(Buffer.from([0, 0, 0, correlationId, 7, 7])));
  for (const response of responses) connection.processData(response);
  expect(payloads.map(({ correlationId }) => correlationId)).toEqual([1, 2, 3]);
  for (const [at, { payload }] of payloads.entries()) {
    expect(payload.buffer).toBe(responses[at]!.buffer);
    expect([...payload]).toEqual([7, 7]);
  }
});

async function connectTo(onPeer: (peer: Socket) => void): Promise<{ socket: Socket; close(): void }> {
  const server = createServer(onPeer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const options = { host: '127.0.0.1', port, onConnect: () => {} };
  const socket = createSocketFactory()(options as ISocketFactoryArgs);
  const close = () => {
    socket.destroy();
    server.close();
  };
  return { socket, close };
}

const SHIFTS = [
  ['back', -3_600_000],
  ['forward', 3_600_000],
] as const;

it.each(SHIFTS)('heartbeats keep their interval when the system clock is set %s by an hour', async (_, shiftMs) => {
  vi.useFakeTimers();
  const logger = { namespace: () => logger, ...LOGGER };
  const sent: number[] = [];
  const group = new ConsumerGroupClass({
    logger,
    cluster: {},
    instrumentationEmitter: { emit: () => {} },
    retry: { retries: 0 },
    topics: [],
    topicConfigurations: {},
    assigners: [],
  });
  Object.assign(group, { memberId: 'm', generationId: 1 });
  group.coordinator = { heartbeat: async () => void sent.push(performance.now()) };
  const sendHeartbeats = async (forMs: number) => {
    for (let passedMs = 0; passedMs < forMs; passedMs += 100) {
      await group.heartbeat({ interval: 1_000 });
      await vi.advanceTimersByTimeAsync(100);
    }
  };
  await sendHeartbeats(3_000);
  vi.setSystemTime(Date.now() + shiftMs);
  await sendHeartbeats(10_000);
  const gaps = sent.slice(1).map((at, before) => at - sent[before]!);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(1_200);
  expect(sent.length).toBeGreaterThanOrEqual(10);
});

it.each(SHIFTS)('a request times out on time when the system clock is set %s by an hour', async (_, shiftMs) => {
  vi.useFakeTimers();
  const queue = openQueue({ enforceRequestTimeout: true });
  const timedOutAtMs: number[] = [];
  const startMs = performance.now();
  queue.inflight.set(1, {
    requestTimeout: 1_000,
    sentAt: Date.now(),
    timeoutRequest: () => {
      timedOutAtMs.push(performance.now() - startMs);
      queue.inflight.clear();
    },
  });
  queue.scheduleRequestTimeoutCheck();
  vi.setSystemTime(Date.now() + shiftMs);
  await vi.advanceTimersByTimeAsync(5_000);
  queue.destroy();
  expect(timedOutAtMs).toHaveLength(1);
  expect(timedOutAtMs[0]).toBeGreaterThanOrEqual(1_000);
  expect(timedOutAtMs[0]).toBeLessThanOrEqual(1_300);
});

it('a connection uses a single timer, set for the next request that can time out', async () => {
  vi.useFakeTimers();
  const queue = openQueue({ enforceRequestTimeout: true, maxInFlightRequests: null });
  const ended: string[] = [];
  const push = (correlationId: number, requestTimeout: number) =>
    queue.push({
      entry: {
        apiName: 'Fetch',
        apiKey: 1,
        apiVersion: 13,
        correlationId,
        resolve: () => ended.push(`${correlationId} completed`),
        reject: ({ name }: Error) => ended.push(`${correlationId} ${name}`),
      },
      expectResponse: true,
      requestTimeout,
      sendRequest: () => {},
    });
  queue.scheduleRequestTimeoutCheck();
  expect(vi.getTimerCount()).toBe(0);
  push(1, 5_000);
  push(2, 1_000);
  push(3, 1_000);
  await vi.advanceTimersByTimeAsync(500);
  queue.fulfillRequest({ correlationId: 2, payload: Buffer.alloc(0), size: 0 });
  await vi.advanceTimersByTimeAsync(499);
  expect(ended).toEqual(['2 completed']);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(2);
  expect(ended).toEqual(['2 completed', '3 KafkaJSRequestTimeoutError']);
  await vi.advanceTimersByTimeAsync(3_900);
  expect(ended).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(200);
  expect(ended[2]).toBe('1 KafkaJSRequestTimeoutError');
  expect(vi.getTimerCount()).toBe(0);
});
