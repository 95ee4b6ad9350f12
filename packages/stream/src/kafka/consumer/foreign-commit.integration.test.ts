import { until } from '@playline/testkit';
import { afterAll, expect, it } from 'vitest';
import { sendNumbered } from '../../test/producer-contract.ts';
import { createTokenSink, TokenStore } from '../../test/token-store.ts';
import { openBlockConsumer } from '../index.ts';
import { openGroupOffsets } from '../log/open-group-offsets.ts';
import { useKafka } from '../test/kafka-fixture.ts';

const { fixture, producer } = await useKafka();
const offsets = openGroupOffsets({ brokers: fixture.brokers, clientId: 'test' });
afterAll(() => offsets.close());

/** Creates a topic with 50 records that a group has stored and committed, and `unread` further records. */
async function openBench(unread: number) {
  const topic = await fixture.createTopic({ partitions: 1 });
  const at = { topic, partition: 0 };
  const groupId = `${topic}-group`;
  const store = new TokenStore();
  const open = () =>
    openBlockConsumer({
      brokers: fixture.brokers,
      groupId,
      topics: [topic],
      sink: createTokenSink(store),
      deadLetters: producer,
      sessionTimeoutMs: 3_000,
      limits: { rowsMax: 20, bytesMax: 1_000_000, ageMaxMs: 50 },
    });
  const fill = (count: number) => sendNumbered(producer, { topic, text: 'row', count });
  const committed = async () => (await fixture.committed(groupId, topic))[0]!.offset;
  await fill(50);
  const first = await open();
  await until('the records are committed', async () => (await committed()) === 50);
  await first.close();
  await fill(unread);
  const read = async () => (await offsets.list(groupId))[0]!;
  const decisionOf = async (from: number) => {
    const { committed, mark } = await read();
    return { from, forCommit: { committed, mark }, decidedAtMs: Date.now(), replaced: [] };
  };
  const rows = () => store.offsets(topic).map((row) => Number(row.split('/')[1]));
  return { at, groupId, open, committed, read, decisionOf, rows };
}
const offsetsBelow = (end: number) => Array.from({ length: end }, (_, offset) => offset);

it('a group whose offset was moved by another tool waits for a decision, then stores every record once', async () => {
  const { at, groupId, open, committed, read, decisionOf, rows } = await openBench(60);
  await fixture.commit(groupId, { topic: at.topic, offset: 100, metadata: '' });
  expect((await read()).finding).toMatchObject({ kind: 'foreign' });
  const consumer = await open();
  await until('the partition is paused', () => [...consumer.blockers().values()].join().includes('another tool'));
  expect([await committed(), rows().length]).toEqual([100, 50]);
  await offsets.decide(groupId, at, await decisionOf(20));
  await until('the records are committed', async () => (await committed()) === 110);
  expect(consumer.ready()).toBe(true);
  await consumer.close();
  expect(rows()).toEqual(offsetsBelow(110));
  expect((await read()).finding).toEqual({ kind: 'intact' });
});

it('an operator can move the offset of a group without members, and rereading stores no row twice', async () => {
  const { at, groupId, open, committed, read, decisionOf, rows } = await openBench(30);
  const consumer = await open();
  await until('the records are committed', async () => (await committed()) === 80);
  expect(await offsets.move(groupId, at, await decisionOf(10))).toBe(false);
  const stale = await decisionOf(10);
  await consumer.close();
  await until('the group has no members', async () => await offsets.move(groupId, at, await decisionOf(10)));
  expect(await read()).toMatchObject({ committed: 10, finding: { kind: 'intact' } });
  await expect(offsets.move(groupId, at, stale)).rejects.toThrow('has changed');
  const next = await open();
  await until('the records are committed', async () => (await committed()) === 80);
  await next.close();
  expect(rows()).toEqual(offsetsBelow(80));
});
