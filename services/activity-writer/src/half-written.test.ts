import { setImmediate as nextTurn } from 'node:timers/promises';
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
const PARTITION = partitionOf(CHAIN);
const NOW_MS = 1_790_000_000_000;
const NO_FILTERS = { fromIndexedAt: null, toIndexedAt: null, contractAddress: null, type: null };
/** Enough event loop turns for a killed writer to finish its pending calls. */
const TURNS = 20;

async function send(world: MemoryWorld, versions: readonly [number, string][], schema = ACTIVITY_SCHEMA) {
  for (const [number, amount] of versions) {
    const record = activityOf(number, { details: detailsOf(number, amount) });
    await world.send(ACTIVITIES, CHAIN, activityValue(schema, record));
  }
}

/** Kills a writer while one table rejects inserts. Only the tables before this table have the block's rows. */
async function killBefore(world: MemoryWorld, table: 'activity_ids' | 'activity_feeds'): Promise<void> {
  Object.assign(world.refused, { table, times: 0 });
  const writer = world.open();
  await until('an insert was rejected', () => world.refused.times > 0);
  writer.kill();
  for (let count = 0; count < TURNS; count++) await nextTurn();
  world.refused.table = null;
}

/** Returns the rows in the feed, and the rows that `activities` requires in the feed. */
async function compare(world: MemoryWorld) {
  const horizon = toHorizon((await world.watermarks.read(PARTITION)) ?? 0);
  const query = { chain: CHAIN, filters: NO_FILTERS, gap: START_GAP, direction: 'next', limit: 200 } as const;
  const page = await world.store.reader.readPage({ ...query, horizon });
  const inOrder = world.activities().toSorted((a, b) => a.updatedAt - b.updatedAt);
  const last = new Map(inOrder.filter(({ updatedAt }) => updatedAt < horizon).map((row) => [row.id, row]));
  const expected = [...last.values()].toSorted((a, b) => a.updatedAt - b.updatedAt).map(toShownActivity);
  return { actual: page.rows, expected };
}

const KILLED_BEFORE = ['activity_ids', 'activity_feeds'] as const;

describe.each(KILLED_BEFORE)('a block whose writer was killed before writing %s is complete if', (table) => {
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
    const { actual, expected } = await compare(world);
    expect(actual).toEqual(expected);
  };

  it.each<[string, [number, string][], [number, string][]]>([
    [
      'the log lost an update, which the next update supersedes',
      [
        [1, '2'],
        [2, '1'],
      ],
      [[1, '3']],
    ],
    [
      'the log lost a record, so that the other records get new times',
      [
        [2, '1'],
        [1, '2'],
      ],
      [],
    ],
    ['the log lost all records of the block', [[1, '2']], [[1, '3']]],
  ])('%s', async (_, block, next) => {
    await send(world, block);
    await killBefore(world, table);
    world.log.expire(ACTIVITIES, PARTITION, 2);
    if (block.length > 1) await expectComplete();
    await send(world, next);
    await expectComplete();
  });

  it('the schema registry lost a schema that the block needs', async () => {
    await send(world, [[1, '2']], SECOND_ACTIVITY_SCHEMA);
    await send(world, [[1, '3']]);
    await killBefore(world, table);
    world.registry.forgotten.add(SECOND_ACTIVITY_SCHEMA);
    await expectComplete();
  });
});
