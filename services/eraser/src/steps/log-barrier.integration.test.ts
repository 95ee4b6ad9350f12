import { randomBytes } from 'node:crypto';
import { Admin } from '@platformatic/kafka';
import { frameRecord, type IdentityLinkRecord, identityLinkCodec, TOPICS, WAITING_HEADERS } from '@playline/contracts';
import type { LogReader, OutgoingRecord, Producer } from '@playline/stream';
import { openAtomicPublisher, openLogReader, openProducer } from '@playline/stream/kafka';
import { type OwnStores, openOwnStores, testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogBarrier, type LogBarrier } from './log-barrier.ts';

const { kafka: brokers } = testStores();
let ownStores: OwnStores;
let producer: Producer;
let reader: LogReader;
const admin = new Admin({ clientId: 'test', bootstrapBrokers: [...brokers] });

beforeAll(async () => {
  ownStores = await openOwnStores();
  producer = await openProducer({ brokers, clientId: 'test' });
  reader = openLogReader({ brokers, clientId: 'test' });
});
afterAll(async () => {
  await Promise.all([producer.close(), reader.close(), admin.close()]);
  await ownStores.close();
});

const value = Buffer.from('record');
const publishRecords = (records: readonly OutgoingRecord[]) =>
  new Promise<void>((resolve, reject) => {
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
const publish = (topic: string, count: number) =>
  publishRecords(
    Array.from({ length: count }, () => ({ topic: ownStores.prefix + topic, key: Buffer.from('k'), value })),
  );
const commitAt = (groupId: string, name: string, partitionOffsets: { partition: number; offset: bigint }[]) =>
  admin.alterConsumerGroupOffsets({ groupId, topics: [{ name, partitionOffsets }] });
/** Commits offsets on behalf of a group without members. */
const commit = async (groupId: string, topic: string, to: (end: number) => number = (end) => end) => {
  const bounds = await reader.bounds(ownStores.prefix + topic, { readUncommitted: true });
  const partitions = bounds.map(({ partition, end }) => ({ partition, offset: BigInt(to(end)) }));
  await commitAt(groupId, ownStores.prefix + topic, partitions);
};
const { messages, identityLinks: links, parkedLinks, identityDecisions: decisions, consents } = TOPICS;
const SCHEMA_ID = 7;
const schemaOf = async (id: number) => (id === SCHEMA_ID ? identityLinkCodec.schema : null);
const UNLINK: IdentityLinkRecord['unlink'] = [{ key: Buffer.alloc(16, 1), kind: 'custom' }];

interface Fact {
  readonly record: IdentityLinkRecord;
  readonly keys: readonly Buffer[];
}

function createFact(number: number): Fact {
  const ids = { fromKind: 'anonymous', fromId: `from ${number}`, toKind: 'custom', toId: `to ${number}` } as const;
  const times = { eventTime: 1_000 + number, receivedAt: 2_000 + number };
  const named = { environmentId: 'env', messageId: randomBytes(16), link: 'alias', traceId: '', unlink: [] } as const;
  return { record: { ...named, ...ids, ...times, unlink: [] }, keys: [randomBytes(16), randomBytes(16)] };
}

/** Creates a marker for a fact that was moved from the parked topic. */
function toMarker(offset: number): OutgoingRecord {
  const offsets = Buffer.alloc(8);
  offsets.writeBigUInt64BE(BigInt(offset));
  const headers = { [WAITING_HEADERS.left]: offsets };
  return { topic: ownStores.prefix + parkedLinks.name, key: Buffer.from('k'), value: Buffer.alloc(0), headers };
}

/** Publishes waiting facts as the linker does. */
const publishFacts = (topic: string, facts: readonly Fact[]) =>
  publishRecords(
    facts.map(({ record, keys }) => ({
      topic: ownStores.prefix + topic,
      key: Buffer.from('k'),
      value: frameRecord(SCHEMA_ID, identityLinkCodec.encode(record)),
      headers: { [WAITING_HEADERS.identityKeys]: Buffer.concat(keys) },
    })),
  );

describe('LogBarrier', () => {
  let groups: { linker: string; writer: string };
  let barrier: LogBarrier;
  let polls: string[];
  beforeEach(async () => {
    const tag = randomBytes(4).toString('hex');
    groups = { linker: `linker-${tag}`, writer: `writer-${tag}` };
    polls = [];
    const watched = new Proxy(reader, {
      get: (target, name) => {
        const called = Reflect.get(target, name);
        if (name !== 'committed') return typeof called === 'function' ? called.bind(target) : called;
        return (groupId: string, topic: string) => {
          polls.push(`${groupId} ${topic.slice(ownStores.prefix.length)}`);
          return target.committed(groupId, topic);
        };
      },
    });
    barrier = createLogBarrier({ reader: watched, groups, schemaOf, topicPrefix: ownStores.prefix, pollMs: 20 });
    for (const topic of [links, messages, consents, decisions])
      await commit(topic === links ? groups.linker : groups.writer, topic.name);
  });
  const startWait = <T>(wait: Promise<T>) => {
    const state = { isDone: false, wait };
    wait.then(
      () => {
        state.isDone = true;
      },
      () => {},
    );
    return state;
  };
  const polled = (groupId: string, topic: string, times = 3) => {
    const countPolls = () => polls.filter((poll) => poll === `${groupId} ${topic}`).length;
    const before = countPolls();
    return until('the barrier has polled', () => countPolls() >= before + times);
  };
  const { signal } = new AbortController();

  it('linksStored waits until all links are committed, then until all decisions are stored', async () => {
    await publish(links.name, 5);
    const stored = startWait(barrier.linksStored(signal));
    await polled(groups.linker, links.name);
    // These decisions are after the end offsets that were read when the wait started.
    await publish(decisions.name, 3);
    await commit(groups.linker, links.name);
    await polled(groups.writer, decisions.name);
    expect(stored.isDone).toBe(false);
    await commit(groups.writer, decisions.name, (end) => Math.max(0, end - 1));
    await polled(groups.writer, decisions.name);
    expect(stored.isDone).toBe(false);
    await commit(groups.writer, decisions.name);
    await stored.wait;
  });

  it('linksStored returns republished and parked links without waiting for them', async () => {
    await publish(links.name, 1);
    const stored = startWait(barrier.linksStored(signal));
    await polled(groups.linker, links.name);
    const before = await reader.bounds(ownStores.prefix + links.name);
    const [delayed, parked, unlink, done, moved] = [0, 1, 2, 3, 4].map(createFact) as [Fact, Fact, Fact, Fact, Fact];
    await publishFacts(links.name, [delayed, { ...unlink, record: { ...unlink.record, unlink: UNLINK } }]);
    await publishFacts(parkedLinks.name, [done]);
    await commit(`${groups.linker}-parked`, parkedLinks.name);
    await publishFacts(parkedLinks.name, [parked, moved]);
    const ends = (await reader.bounds(ownStores.prefix + parkedLinks.name)).map(({ end }) => end);
    await publishRecords([toMarker(Math.max(...ends) - 1)]);
    // Unreadable records are not counted as waiting links.
    await publish(links.name, 2);
    const partitions = before.map(({ partition, end }) => ({ partition, offset: BigInt(end) }));
    await commitAt(groups.linker, ownStores.prefix + links.name, partitions);
    await commit(groups.writer, decisions.name);
    const waiting = await stored.wait;
    const toWaiting = ({ record, keys }: Fact, isUnlink = false) => {
      return { environmentId: 'env', receivedAtMs: record.receivedAt, keys, isUnlink };
    };
    const expected = [toWaiting(delayed), toWaiting(unlink, true), toWaiting(parked)];
    expect(waiting).toHaveLength(expected.length);
    expect(waiting).toEqual(expect.arrayContaining(expected));
  });

  it("allStored returns the log's end offsets, including dead-letter topics", async () => {
    for (const topic of [messages, consents]) await publish(topic.name, 2);
    await publish(`${messages.name}.dead`, 1);
    const stored = startWait(barrier.allStored(signal));
    await polled(groups.writer, messages.name);
    // Later records are not awaited because writers check them against the loaded fences.
    await publish(consents.name, 5);
    await commit(groups.writer, messages.name);
    await polled(groups.writer, consents.name);
    expect(stored.isDone).toBe(false);
    await commit(groups.writer, consents.name, (end) => Math.max(0, end - 5));
    const ends = await stored.wait;
    const now = await reader.bounds(ownStores.prefix + consents.name);
    const end = now.reduce((sum, each) => sum + each.end, 0);
    const ofConsents = Object.entries(ends).filter(([name]) => name.startsWith(`${consents.name}/`));
    expect(ofConsents.reduce((sum, [, each]) => sum + each, 0)).toBe(end - 5);
    expect(Object.keys(ends).some((name) => name.startsWith(`${messages.name}.dead/`))).toBe(true);
    expect(Object.values(ends).every((each) => each > 0)).toBe(true);
  });

  it('allStored waits for records in an open transaction but not for end markers', async () => {
    const publisher = await openAtomicPublisher({ brokers, name: `test-${randomBytes(4).toString('hex')}` });
    const record = { topic: ownStores.prefix + messages.name, key: Buffer.from('k'), value, headers: {} };
    const sumEnds = async () => (await reader.bounds(record.topic)).reduce((sum, { end }) => sum + end, 0);
    const before = await sumEnds();
    await publisher.publish([record]);
    await publisher.close();
    await until('the marker follows the record', async () => (await sumEnds()) === before + 2);
    // The record is committed, but the end marker is not.
    await commit(groups.writer, messages.name, (end) => Math.max(0, end - 1));
    await barrier.allStored(signal);

    const kafka = new Kafka({ clientId: 'test', brokers, logLevel: logLevel.NOTHING });
    const transactionProducer = kafka.producer({
      transactionalId: `open-${randomBytes(4).toString('hex')}`,
      maxInFlightRequests: 1,
      idempotent: true,
    });
    await transactionProducer.connect();
    const transaction = await transactionProducer.transaction();
    await transaction.send({ topic: record.topic, messages: [{ key: 'k', value }] });
    const stored = startWait(barrier.allStored(signal));
    await polled(groups.writer, messages.name, 12);
    expect(stored.isDone).toBe(false);
    await transaction.abort();
    await stored.wait;
    await transactionProducer.disconnect();
  });

  it('a wait rejects when its signal is aborted', async () => {
    await publish(links.name, 1);
    const stop = new AbortController();
    const wait = barrier.linksStored(stop.signal);
    await polled(groups.linker, links.name);
    stop.abort();
    await expect(wait).rejects.toThrow();
  });
});
