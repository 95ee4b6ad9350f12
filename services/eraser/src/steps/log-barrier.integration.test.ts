import { randomBytes } from 'node:crypto';
import { Admin } from '@platformatic/kafka';
import { TOPICS } from '@playline/contracts';
import type { LogReader, Producer } from '@playline/stream';
import { openAtomicPublisher, openLogReader, openProducer } from '@playline/stream/kafka';
import { type OwnStores, openOwnStores, testStores, until } from '@playline/testkit';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogBarrier, type LogBarrier } from './log-barrier.ts';

const { kafka: brokers } = testStores();
let own: OwnStores;
let producer: Producer;
let reader: LogReader;
const admin = new Admin({ clientId: 'test', bootstrapBrokers: [...brokers] });

beforeAll(async () => {
  own = await openOwnStores();
  producer = await openProducer({ brokers, clientId: 'test' });
  reader = openLogReader({ brokers, clientId: 'test' });
});
afterAll(async () => {
  await Promise.all([producer.close(), reader.close(), admin.close()]);
  await own.close();
});

const value = Buffer.from('record');
const publish = (topic: string, count: number) =>
  new Promise<void>((resolve, reject) => {
    const records = Array.from({ length: count }, () => ({ topic: own.prefix + topic, key: Buffer.from('k'), value }));
    producer.send(records, (fault) => (fault === null ? resolve() : reject(fault)));
  });
const commitAt = (groupId: string, name: string, partitionOffsets: { partition: number; offset: bigint }[]) =>
  admin.alterConsumerGroupOffsets({ groupId, topics: [{ name, partitionOffsets }] });
/** Commits of groups that have no members: whoever reads is not what is tried here. */
const commit = async (groupId: string, topic: string, to: (end: number) => number = (end) => end) => {
  const bounds = await reader.bounds(own.prefix + topic, { undecided: true });
  const partitions = bounds.map(({ partition, end }) => ({ partition, offset: BigInt(to(end)) }));
  await commitAt(groupId, own.prefix + topic, partitions);
};
const { messages, identityLinks: links, identityDecisions: decisions, consents } = TOPICS;

describe('the barrier', () => {
  let groups: { linker: string; writer: string };
  let barrier: LogBarrier;
  let looks: string[];
  beforeEach(async () => {
    const tag = randomBytes(4).toString('hex');
    groups = { linker: `linker-${tag}`, writer: `writer-${tag}` };
    looks = [];
    const watched = new Proxy(reader, {
      get: (target, name) => {
        const called = Reflect.get(target, name);
        if (name !== 'committed') return typeof called === 'function' ? called.bind(target) : called;
        return (groupId: string, topic: string) => {
          looks.push(`${groupId} ${topic.slice(own.prefix.length)}`);
          return target.committed(groupId, topic);
        };
      },
    });
    barrier = createLogBarrier({ reader: watched, groups, topicPrefix: own.prefix, pollMs: 20 });
    for (const topic of [links, messages, consents, decisions])
      await commit(topic === links ? groups.linker : groups.writer, topic.name);
  });
  /** Starts a wait and tells whether it is over. */
  const begin = <T>(wait: Promise<T>) => {
    const state = { isOver: false, wait };
    wait.then(
      () => {
        state.isOver = true;
      },
      () => {},
    );
    return state;
  };
  const asked = (groupId: string, topic: string, times = 3) => {
    const countLooks = () => looks.filter((look) => look === `${groupId} ${topic}`).length;
    const before = countLooks();
    return until('it looks again', () => countLooks() >= before + times);
  };
  const { signal } = new AbortController();

  it('waits until the linker has committed every link, and then until every decision that it made is stored', async () => {
    await publish(links.name, 5);
    const stored = begin(barrier.linksStored(signal));
    await asked(groups.linker, links.name);
    // Decided while it waits: behind the ends that stood when it began.
    await publish(decisions.name, 3);
    await commit(groups.linker, links.name);
    await asked(groups.writer, decisions.name);
    expect(stored.isOver).toBe(false);
    await commit(groups.writer, decisions.name, (end) => Math.max(0, end - 1));
    await asked(groups.writer, decisions.name);
    expect(stored.isOver).toBe(false);
    await commit(groups.writer, decisions.name);
    await stored.wait;
  });

  it('waits for a link that went back to the end of its topic while it waited for the linker', async () => {
    await publish(links.name, 1);
    const stored = begin(barrier.linksStored(signal));
    await asked(groups.linker, links.name);
    const before = await reader.bounds(own.prefix + links.name);
    await publish(links.name, 1);
    const partitions = before.map(({ partition, end }) => ({ partition, offset: BigInt(end) }));
    await commitAt(groups.linker, own.prefix + links.name, partitions);
    await asked(groups.linker, links.name);
    expect(stored.isOver).toBe(false);
    await commit(groups.linker, links.name);
    await stored.wait;
  });

  it('tells the ends that it waited for, dead letters included, and of consents by partition', async () => {
    for (const topic of [messages, consents]) await publish(topic.name, 2);
    await publish(`${messages.name}.dead`, 1);
    const stored = begin(barrier.allStored(signal));
    await asked(groups.writer, messages.name);
    // What comes now is judged by writers who know the fences.
    await publish(consents.name, 5);
    await commit(groups.writer, messages.name);
    await asked(groups.writer, consents.name);
    expect(stored.isOver).toBe(false);
    await commit(groups.writer, consents.name, (end) => Math.max(0, end - 5));
    const ends = await stored.wait;
    const now = await reader.bounds(own.prefix + consents.name);
    const end = now.reduce((sum, each) => sum + each.end, 0);
    expect([...ends.consents.values()].reduce((sum, each) => sum + each, 0)).toBe(end - 5);
    expect(Object.keys(ends.byName).some((name) => name.startsWith(`${messages.name}.dead/`))).toBe(true);
    expect(Object.values(ends.byName).every((each) => each > 0)).toBe(true);
  });

  it('does not wait for the mark of a transaction, which nobody commits, but for the records of one that is open', async () => {
    const publisher = await openAtomicPublisher({ brokers, name: `test-${randomBytes(4).toString('hex')}` });
    const record = { topic: own.prefix + messages.name, key: Buffer.from('k'), value, headers: {} };
    const sumEnds = async () => (await reader.bounds(record.topic)).reduce((sum, { end }) => sum + end, 0);
    const before = await sumEnds();
    await publisher.publish([record]);
    await publisher.close();
    await until('the mark stands behind the record', async () => (await sumEnds()) === before + 2);
    // The record itself is committed, the mark behind it is not.
    await commit(groups.writer, messages.name, (end) => Math.max(0, end - 1));
    await barrier.allStored(signal);

    const kafka = new Kafka({ clientId: 'test', brokers, logLevel: logLevel.NOTHING });
    const open = kafka.producer({
      transactionalId: `open-${randomBytes(4).toString('hex')}`,
      maxInFlightRequests: 1,
      idempotent: true,
    });
    await open.connect();
    const transaction = await open.transaction();
    await transaction.send({ topic: record.topic, messages: [{ key: 'k', value }] });
    const stored = begin(barrier.allStored(signal));
    await asked(groups.writer, messages.name, 12);
    expect(stored.isOver).toBe(false);
    await transaction.abort();
    await stored.wait;
    await open.disconnect();
  });

  it('ends with its signal', async () => {
    await publish(links.name, 1);
    const stop = new AbortController();
    const wait = barrier.linksStored(stop.signal);
    await asked(groups.linker, links.name);
    stop.abort();
    await expect(wait).rejects.toThrow();
  });
});
