import { setImmediate as turn } from 'node:timers/promises';
import {
  type ActivityRow,
  type Position,
  type ShownActivity,
  START_GAP,
  type Supersession,
  toHorizon,
  toShownActivity,
} from '@playline/chain';
import type { Leftover } from '@playline/chain/memory';
import { StoreFault } from '@playline/stores';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ACTIVITIES, ACTIVITY_SCHEMA, createMemoryWorld, type MemoryWorld, partitionOf } from './test/memory-writer.ts';
import { activityOf, activityValue, detailsOf } from './test/records.ts';

const CHAIN = 'test-chain';
const NOW_MS = 1_790_000_000_000;
const NO_FILTERS = { fromIndexedAt: null, toIndexedAt: null, contractAddress: null, type: null };

/** What happens while one writer lives. */
interface Life {
  readonly rowsMax: number;
  /** Turns of the event loop until it is killed. */
  readonly turns: number;
  /** The outcome of its first inserts; later ones are stored. */
  readonly leftovers: readonly (Leftover | 'stored')[];
  /** What is sent meanwhile: an activity by its number, where a repeated number is an update; or a tick. */
  readonly sent: readonly (number | 'tick')[];
  /** Steps of the broker's clock between them. */
  readonly stepMs: number;
  /** Turns of the event loop between two pages of the follower, and rows of a page. */
  readonly pause: number;
  readonly limit: number;
}

const life: fc.Arbitrary<Life> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 6 }),
  turns: fc.integer({ min: 0, max: 80 }),
  leftovers: fc.array(fc.constantFrom<Leftover | 'stored'>('nothing', 'rows', 'token', 'stored'), { maxLength: 5 }),
  sent: fc.array(fc.oneof(fc.nat({ max: 12 }), fc.constant('tick' as const)), { maxLength: 15 }),
  stepMs: fc.integer({ min: -3, max: 3 }),
  pause: fc.integer({ min: 1, max: 8 }),
  limit: fc.integer({ min: 1, max: 5 }),
});

/** A replica that follows the feed from its beginning, one page after the other. */
class Follower {
  readonly seen: ShownActivity[] = [];
  /** Moments at which a page was empty: the watermark read before it, and the number of rows seen by then. */
  readonly arrivals: { watermark: number; count: number }[] = [];
  /** The contents of each table up to a watermark, recorded each time one was read. */
  readonly audits: { watermark: number; standing: number[][] }[] = [];
  readonly #world: MemoryWorld;
  #gap = START_GAP;

  constructor(world: MemoryWorld) {
    this.#world = world;
  }

  /** @returns whether the page had rows */
  async follow(limit: number): Promise<boolean> {
    const watermark = await this.#world.watermarks.read(partitionOf(CHAIN));
    if (watermark === null) return false;
    this.audits.push({ watermark, standing: standingIn(this.#world, watermark) });
    const horizon = toHorizon(watermark);
    const question = { chain: CHAIN, filters: NO_FILTERS, gap: this.#gap, direction: 'next', limit, horizon } as const;
    const { rows, next } = await this.#world.store.reader.readPage(question);
    this.seen.push(...rows);
    if (rows.length === 0) this.arrivals.push({ watermark, count: this.seen.length });
    const isOn = JSON.stringify(next) !== JSON.stringify(this.#gap);
    this.#gap = next;
    return isOn;
  }
}

/** Offsets of the rows up to a time in each table of activities, and the versions superseded up to then. */
function standingIn({ store }: MemoryWorld, upTo: number): number[][] {
  const entriesIn = (table: string) =>
    store.blocks.flatMap((block) =>
      block.table === table ? (block.rows as readonly (ActivityRow | Supersession)[]) : [],
    );
  const toSet = (numbers: readonly number[]) => [...new Set(numbers)].toSorted((a, b) => a - b);
  const offsets = ['activities', 'activity_ids', 'activity_feeds'].map((table) =>
    toSet(entriesIn(table).flatMap((row) => ('offset' in row && row.updatedAt <= upTo ? [row.offset] : []))),
  );
  const superseded = entriesIn('activity_feeds').flatMap((row) =>
    'supersededAt' in row && row.supersededAt <= upTo ? [row.updatedAt] : [],
  );
  return [...offsets, toSet(superseded)];
}

/** For each activity, the position of its last version up to a time. */
function placesUpTo(rows: readonly Position[], upTo: number): Map<string, number> {
  const own = rows.filter(({ updatedAt }) => updatedAt <= upTo).toSorted((a, b) => a.updatedAt - b.updatedAt);
  return new Map(own.map(({ id, updatedAt }) => [id, updatedAt]));
}

async function send(world: MemoryWorld, { sent, stepMs }: Life, version: () => number) {
  for (const each of sent) {
    vi.setSystemTime(Date.now() + stepMs);
    if (each === 'tick') await world.tick(partitionOf(CHAIN));
    else
      await world.send(
        ACTIVITIES,
        CHAIN,
        activityValue(ACTIVITY_SCHEMA, activityOf(each, { details: detailsOf(each, String(version())) })),
      );
  }
}

/** Runs writers one after the other, each killed, then one that may finish; a replica follows all the while. */
async function live(
  lives: readonly Life[],
): Promise<{ world: MemoryWorld; follower: Follower; last: Map<string, string> }> {
  const world = createMemoryWorld();
  const follower = new Follower(world);
  let versions = 0;
  for (const each of lives) {
    for (const leftover of each.leftovers)
      if (leftover !== 'stored')
        world.store.failNext(new StoreFault('busy', { kind: 'passing', code: 'BUSY' }), leftover);
    await send(world, each, () => versions++);
    const writer = world.open(each.rowsMax);
    for (let count = 0; count < each.turns; count++) {
      await turn();
      if (count % each.pause === 0) await follower.follow(each.limit);
    }
    writer.kill();
  }
  await world.write();
  while (await follower.follow(3));
  const last = new Map(
    world
      .activities()
      .toSorted((a, b) => a.offset - b.offset)
      .map((row) => [row.id, String(toShownActivity(row).members)]),
  );
  return { world, follower, last };
}

describe('a replica that follows the feed while writers are killed at any step and their store fails in every way', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS }));
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('gets the last version of every activity, in the order of the log, and no version twice', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      vi.setSystemTime(NOW_MS);
      const { world, follower, last } = await live(lives);
      const places = follower.seen.map(({ updatedAt }) => updatedAt);
      expect(places).toEqual([...new Set(places)].toSorted((a, b) => a - b));
      expect(new Map(follower.seen.map(({ id, members }) => [id, String(members)]))).toEqual(last);
      // Duplicates may exist, which readers drop and merges remove: an insert of a killed writer that finished after
      // its token was lost, beside the insert of the next owner.
      const stored = new Set(world.activities().map(({ offset }) => offset));
      const sent = lives.flatMap((each) => each.sent).filter((each) => each !== 'tick');
      expect(stored.size).toBe(sent.length);
      expect(world.letters(ACTIVITIES)).toEqual([]);
    });
    await fc.assert(property, { numRuns: runsOf({ quick: 50, all: 250 }) });
  }, 60_000);

  it('has, at the end of the feed, all rows up to the watermark; and none is ever added below one', async () => {
    const property = fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
      vi.setSystemTime(NOW_MS);
      const { world, follower } = await live(lives);
      for (const { watermark, count } of follower.arrivals) {
        const replica = placesUpTo(follower.seen.slice(0, count), Number.POSITIVE_INFINITY);
        for (const [id, us] of placesUpTo(world.activities(), watermark))
          expect(replica.get(id), id).toBeGreaterThanOrEqual(us);
      }
      for (const { watermark, standing } of follower.audits) expect(standing).toEqual(standingIn(world, watermark));
    });
    await fc.assert(property, { numRuns: runsOf({ quick: 50, all: 250 }) });
  }, 60_000);
});
