import { setImmediate as turn } from 'node:timers/promises';
import { START_GAP, toHorizon, toShownActivity } from '@playline/chain';
import { until } from '@playline/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  ACTIVITIES,
  ACTIVITY_SCHEMA,
  createMemoryWorld,
  type MemoryWorld,
  partitionOf,
  SECOND_ACTIVITY_SCHEMA,
} from './test/memory-writer.ts';
import { activityOf, activityValue, detailsOf } from './test/records.ts';

const CHAIN = 'test-chain';
const HOME = partitionOf(CHAIN);
const NOW_MS = 1_790_000_000_000;
const NO_FILTERS = { fromIndexedAt: null, toIndexedAt: null, contractAddress: null, type: null };
/** Longer than a killed writer needs to finish what it had begun. */
const TURNS = 20;

/** Sends versions of activities, each given by its number and amount. */
async function send(world: MemoryWorld, versions: readonly [number, string][], schema = ACTIVITY_SCHEMA) {
  for (const [number, amount] of versions) {
    const record = activityOf(number, { details: detailsOf(number, amount) });
    await world.send(ACTIVITIES, CHAIN, activityValue(schema, record));
  }
}

/** Kills a writer while one table refuses inserts: earlier tables have the rows, this and later ones do not. */
async function dieBefore(world: MemoryWorld, table: 'activity_ids' | 'activity_feeds'): Promise<void> {
  Object.assign(world.refused, { table, times: 0 });
  const writer = world.open();
  await until('the table was tried', () => world.refused.times > 0);
  writer.kill();
  for (let count = 0; count < TURNS; count++) await turn();
  world.refused.table = null;
}

/** What the feed serves, and what `activities` says it should serve. */
async function compare(world: MemoryWorld) {
  const horizon = toHorizon((await world.watermarks.read(HOME)) ?? 0);
  const page = await world.store.reader.readPage({
    chain: CHAIN,
    filters: NO_FILTERS,
    gap: START_GAP,
    direction: 'next',
    limit: 200,
    horizon,
  });
  const inOrder = world.activities().toSorted((a, b) => a.updatedAt - b.updatedAt);
  const last = new Map(inOrder.filter(({ updatedAt }) => updatedAt < horizon).map((row) => [row.id, row]));
  const expected = [...last.values()].toSorted((a, b) => a.updatedAt - b.updatedAt).map(toShownActivity);
  return { served: page.rows, expected };
}

describe.each(['activity_ids', 'activity_feeds'] as const)('a block whose writer died before %s', (table) => {
  let world: MemoryWorld;
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS });
    world = createMemoryWorld();
    await send(world, [[1, '1']]);
    await world.write();
  });
  afterEach(() => void vi.useRealTimers());

  const expectWhole = async () => {
    const { served, expected } = await compare(world);
    expect(served).toEqual(expected);
  };

  it('is served whole when the log has lost an update of it, and the next update supersedes that one', async () => {
    await send(world, [[1, '2']]);
    await send(world, [[2, '1']]);
    await dieBefore(world, table);
    world.log.expire(ACTIVITIES, HOME, 2);
    await world.write();
    await expectWhole();
    await send(world, [[1, '3']]);
    await world.write();
    await expectWhole();
  });

  it('is served whole when what is left of it gets other times', async () => {
    await send(world, [[2, '1']]);
    await send(world, [[1, '2']]);
    await dieBefore(world, table);
    world.log.expire(ACTIVITIES, HOME, 2);
    await world.write();
    await expectWhole();
  });

  it('is served whole when the registry no longer has one of its schemas', async () => {
    await send(world, [[1, '2']], SECOND_ACTIVITY_SCHEMA);
    await send(world, [[1, '3']]);
    await dieBefore(world, table);
    world.registry.forgotten.add(SECOND_ACTIVITY_SCHEMA);
    await world.write();
    await expectWhole();
  });

  it('is served whole when the log has lost all of it', async () => {
    await send(world, [[1, '2']]);
    await dieBefore(world, table);
    world.log.expire(ACTIVITIES, HOME, 2);
    await send(world, [[1, '3']]);
    await world.write();
    await expectWhole();
  });
});
