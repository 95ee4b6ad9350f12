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
/** More turns than a killed writer needs to finish pending work. */
const TURNS = 20;

/** Sends versions of activities, each given by its number and amount. */
async function send(world: MemoryWorld, versions: readonly [number, string][], schema = ACTIVITY_SCHEMA) {
  for (const [number, amount] of versions) {
    const record = activityOf(number, { details: detailsOf(number, amount) });
    await world.send(ACTIVITIES, CHAIN, activityValue(schema, record));
  }
}

/** Kills a writer while one table refuses inserts: earlier tables have the rows; this table and later tables do not. */
async function killBefore(world: MemoryWorld, table: 'activity_ids' | 'activity_feeds'): Promise<void> {
  Object.assign(world.refused, { table, times: 0 });
  const writer = world.open();
  await until('the table was tried', () => world.refused.times > 0);
  writer.kill();
  for (let count = 0; count < TURNS; count++) await turn();
  world.refused.table = null;
}

/** What the feed serves, and what it should serve according to `activities`. */
async function compare(world: MemoryWorld) {
  const horizon = toHorizon((await world.watermarks.read(HOME)) ?? 0);
  const query = { chain: CHAIN, filters: NO_FILTERS, gap: START_GAP, direction: 'next', limit: 200 } as const;
  const page = await world.store.reader.readPage({ ...query, horizon });
  const inOrder = world.activities().toSorted((a, b) => a.updatedAt - b.updatedAt);
  const last = new Map(inOrder.filter(({ updatedAt }) => updatedAt < horizon).map((row) => [row.id, row]));
  const expected = [...last.values()].toSorted((a, b) => a.updatedAt - b.updatedAt).map(toShownActivity);
  return { served: page.rows, expected };
}

const KILLED_BEFORE = ['activity_ids', 'activity_feeds'] as const;

describe.each(KILLED_BEFORE)('a block whose writer was killed before %s is served in full when', (table) => {
  let world: MemoryWorld;
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS });
    world = createMemoryWorld();
    await send(world, [[1, '1']]);
    await world.write();
  });
  afterEach(() => void vi.useRealTimers());

  const expectComplete = async () => {
    await world.write();
    const { served, expected } = await compare(world);
    expect(served).toEqual(expected);
  };

  it.each<[string, [number, string][], [number, string][]]>([
    [
      'the log has lost an update, which the next update supersedes',
      [
        [1, '2'],
        [2, '1'],
      ],
      [[1, '3']],
    ],
    [
      'the remaining records get other times',
      [
        [2, '1'],
        [1, '2'],
      ],
      [],
    ],
    ['the log has lost all records', [[1, '2']], [[1, '3']]],
  ])('%s', async (_, block, next) => {
    await send(world, block);
    await killBefore(world, table);
    world.log.expire(ACTIVITIES, HOME, 2);
    if (block.length > 1) await expectComplete();
    await send(world, next);
    await expectComplete();
  });

  it('the registry no longer has a schema of the block', async () => {
    await send(world, [[1, '2']], SECOND_ACTIVITY_SCHEMA);
    await send(world, [[1, '3']]);
    await killBefore(world, table);
    world.registry.forgotten.add(SECOND_ACTIVITY_SCHEMA);
    await expectComplete();
  });
});
