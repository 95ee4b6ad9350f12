import { StoreFault } from '@playline/stores';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  ACTIVITIES,
  ACTIVITY_SCHEMA,
  createMemoryWorld,
  type MemoryWorld,
  partitionOf,
  SECOND_ACTIVITY_SCHEMA,
  TOKEN_SCHEMA,
  TOKENS,
} from './test/memory-writer.ts';
import { activityOf, activityValue, detailsOf, tokenOf, tokenValue } from './test/records.ts';

const CHAIN = 'test-chain';
const PARTITION = partitionOf(CHAIN);
const OTHER_CHAIN = ['a', 'b', 'c', 'd'].find((chain) => partitionOf(chain) !== PARTITION)!;
const NOW_MS = 1_790_000_000_000;

let world: MemoryWorld;
const activity = (...args: Parameters<typeof activityOf>) => activityValue(ACTIVITY_SCHEMA, activityOf(...args));
const send = (...args: Parameters<typeof activityOf>) => world.send(ACTIVITIES, CHAIN, activity(...args));
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS });
  world = createMemoryWorld();
});
afterEach(() => void vi.useRealTimers());

it("an activity is stored with a time from the log, and its partition's watermark is published", async () => {
  await send(1);
  await send(2);
  await world.write();
  const times = [NOW_MS * 1_000, NOW_MS * 1_000 + 1];
  expect(world.activities().map(({ updatedAt, offset }) => [updatedAt, offset])).toEqual([
    [times[0], 0],
    [times[1], 1],
  ]);
  expect(await world.watermarks.read(PARTITION)).toBe(times[1]);
  expect(await world.store.activities.constantsOf([world.activities()[0]!.id])).toHaveProperty('size', 1);
});

it("times stay above the watermark and the previous block when the broker's clock is set back", async () => {
  await send(1);
  await world.write();
  vi.setSystemTime(NOW_MS - 60_000);
  await send(2);
  await world.write();
  world.log.moveCommit({ topic: ACTIVITIES, partition: PARTITION, offset: 2, metadata: '{"v":1}' });
  await world.watermarks.publish(PARTITION, NOW_MS * 1_000 + 500);
  await send(3);
  await world.write();
  const times = world.activities().map(({ updatedAt }) => updatedAt - NOW_MS * 1_000);
  expect(times).toEqual([0, 1, 501]);
});

it('a tick advances the watermark and becomes neither a row nor a dead letter', async () => {
  await send(1);
  vi.setSystemTime(NOW_MS + 5_000);
  await world.tick(PARTITION);
  await world.tick(1 - PARTITION);
  await world.write();
  expect(await world.watermarks.read(PARTITION)).toBe((NOW_MS + 5_000) * 1_000);
  expect(await world.watermarks.read(1 - PARTITION)).toBe((NOW_MS + 5_000) * 1_000);
  expect(world.activities()).toHaveLength(1);
  expect(world.deadLetters(ACTIVITIES)).toEqual([]);
});

it('an update is stored as a later version, but rejected if it changes a member that readers filter by', async () => {
  await send(1);
  await world.write();
  await send(1, { details: detailsOf(1, '2') });
  await send(1, { type: 'deposit', indexedAt: 5 });
  const { contractAddress, details } = activityOf(9);
  await send(1, { contractAddress, details });
  await send(2);
  await send(2, { type: 'deposit' });
  await send(2, { traceId: 'later' });
  await world.write();
  expect(world.activities().map(({ offset }) => offset)).toEqual([0, 1, 4, 6]);
  expect(world.deadLetters(ACTIVITIES)).toEqual([
    'changes type, indexed_at',
    'changes contract address',
    'changes type',
  ]);
});

it("a record outside its chain's partition is rejected", async () => {
  await world.send(ACTIVITIES, OTHER_CHAIN, activity(1));
  await world.send(ACTIVITIES, OTHER_CHAIN, activity(2, { chain: OTHER_CHAIN }));
  await world.write();
  expect(world.activities().map(({ chain }) => chain)).toEqual([OTHER_CHAIN]);
  expect(world.deadLetters(ACTIVITIES)).toEqual(["not in its chain's partition"]);
});

it('an invalid record becomes a dead letter, and the reason contains none of its values', async () => {
  await world.send(ACTIVITIES, CHAIN, Buffer.from('no frame'));
  await world.send(ACTIVITIES, CHAIN, activityValue(77, activityOf(1)));
  await world.send(ACTIVITIES, CHAIN, activity(1).subarray(0, 20));
  await send(1, { chain: 'No Chain' });
  await send(1, { details: 'secret' });
  await send(2);
  await world.write();
  expect(world.deadLetters(ACTIVITIES).toSorted()).toEqual([
    'chain is not a valid chain name',
    'details do not match the type, or are longer than 64 KiB',
    'not a record of its schema',
    'not in the Confluent wire format',
    'schema not in the registry: 77',
  ]);
  expect(world.activities().map(({ offset }) => offset)).toEqual([5]);
});

it('a record rejected when its block was first written stays rejected below the watermark', async () => {
  await send(1);
  await world.send(ACTIVITIES, CHAIN, activityValue(SECOND_ACTIVITY_SCHEMA, activityOf(2)));
  await send(3);
  world.registry.forgotten.add(SECOND_ACTIVITY_SCHEMA);
  const first = world.open();
  await new Promise<void>((resolve) => {
    world.calls.onPublished = () => resolve(first.kill());
  });
  world.calls.onPublished = () => {};
  world.registry.forgotten.clear();
  await world.write();
  expect(world.activities().map(({ offset }) => offset)).toEqual([0, 2]);
  const reasons = ['schema not in the registry: 3', 'was not accepted when its block was first written'];
  expect(world.deadLetters(ACTIVITIES)).toEqual(reasons);
});

it('records wait while the schema registry is unavailable, and are stored completely and in order', async () => {
  world.registry.isDown = true;
  for (const number of [1, 2, 3]) await send(number);
  const consumer = world.open();
  await until('the writer has retried', () => world.registry.requests > 3);
  world.registry.isDown = false;
  await consumer.idle();
  await consumer.close();
  expect(world.activities().map(({ offset }) => offset)).toEqual([0, 1, 2]);
});

it('a watermark is published only after the rows below it are stored', async () => {
  const fault = new StoreFault('busy', { kind: 'transient', code: 'TOO_MANY_PARTS' });
  const published: number[] = [];
  const publish = world.watermarks.publish;
  vi.spyOn(world.watermarks, 'publish').mockImplementation(async (partition, us) => {
    published.push(world.activities().length);
    await publish(partition, us);
  });
  world.store.failNext(fault);
  world.store.failNext(fault, 'token');
  await send(1);
  await world.write();
  expect(published).toEqual([1]);
});

it("a token's records are stored with increasing times, and the last record is current", async () => {
  for (const symbol of ['A', 'B', 'C'])
    await world.send(TOKENS, `${CHAIN} 1`, tokenValue(TOKEN_SCHEMA, tokenOf(1, { symbol })));
  await world.send(TOKENS, `${CHAIN} 1`, Buffer.from('no frame'));
  await world.write();
  const { contractAddress } = world.tokens()[0]!;
  expect(await world.store.reader.readToken(CHAIN, contractAddress)).toMatchObject({ symbol: 'C' });
  expect(world.deadLetters(TOKENS)).toEqual(['not in the Confluent wire format']);
});
