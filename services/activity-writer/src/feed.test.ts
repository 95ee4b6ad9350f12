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
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ACTIVITIES, ACTIVITY_SCHEMA, createMemoryWorld, type MemoryWorld, partitionOf } from './test/memory-writer.ts';
import { activityOf, activityValue, detailsOf } from './test/records.ts';

const CHAIN = 'test-chain';
const NOW_MS = 1_790_000_000_000;
const NO_FILTERS = { fromIndexedAt: null, toIndexedAt: null, contractAddress: null, type: null };

/** Events while one writer runs. */
interface WriterRun {
  readonly rowsMax: number;
  /** Turns of the event loop until the writer is killed. */
  readonly turns: number;
  /** The outcomes of its first inserts; later inserts are stored. */
  readonly leftovers: readonly (Leftover | 'stored')[];
  /** Records to send: an activity by number, where a repeated number is an update; or a tick. */
  readonly sent: readonly (number | 'tick')[];
  /** Steps of the broker's clock between records. */
  readonly stepMs: number;
  /** Turns of the event loop between two pages of the follower, and rows per page. */
  readonly pause: number;
  readonly limit: number;
}

const writerRun: fc.Arbitrary<WriterRun> = fc.record({
  rowsMax: fc.integer({ min: 1, max: 6 }),
  turns: fc.integer({ min: 0, max: 80 }),
  leftovers: fc.array(fc.constantFrom<Leftover | 'stored'>('nothing', 'rows', 'token', 'stored'), { maxLength: 5 }),
  sent: fc.array(fc.oneof(fc.nat({ max: 12 }), fc.constant('tick' as const)), { maxLength: 15 }),
  stepMs: fc.integer({ min: -3, max: 3 }),
  pause: fc.integer({ min: 1, max: 8 }),
  limit: fc.integer({ min: 1, max: 5 }),
});

/** A replica that follows the feed from its beginning, page by page. */
class Follower {
  readonly seen: ShownActivity[] = [];
  /** Empty pages: the watermark read before the page, and the number of rows seen by then. */
  readonly arrivals: { watermark: number; count: number }[] = [];
  /** The contents of each table up to a watermark, recorded each time a watermark was read. */
  readonly audits: { watermark: number; stored: number[][] }[] = [];
  readonly #world: MemoryWorld;
  #gap = START_GAP;

  constructor(world: MemoryWorld) {
    this.#world = world;
  }

  /** @returns whether the page had rows */
  async follow(limit: number): Promise<boolean> {
    const watermark = await this.#world.watermarks.read(partitionOf(CHAIN));
    if (watermark === null) return false;
    this.audits.push({ watermark, stored: storedUpTo(this.#world, watermark) });
    const horizon = toHorizon(watermark);
    const query = { chain: CHAIN, filters: NO_FILTERS, gap: this.#gap, direction: 'next', limit, horizon } as const;
    const { rows, next } = await this.#world.store.reader.readPage(query);
    this.seen.push(...rows);
    if (rows.length === 0) this.arrivals.push({ watermark, count: this.seen.length });
    const hasMoved = JSON.stringify(next) !== JSON.stringify(this.#gap);
    this.#gap = next;
    return hasMoved;
  }
}

/** Offsets of the rows up to a time in each table of activities, and the versions superseded up to then. */
function storedUpTo({ store }: MemoryWorld, upTo: number): number[][] {
  const entriesIn = (table: string) =>
    store.blocks
      .filter((block) => block.table === table)
      .flatMap(({ rows }) => rows as readonly (ActivityRow | Supersession)[]);
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
function lastUpTo(rows: readonly Position[], upTo: number): Map<string, number> {
  const own = rows.filter(({ updatedAt }) => updatedAt <= upTo).toSorted((a, b) => a.updatedAt - b.updatedAt);
  return new Map(own.map(({ id, updatedAt }) => [id, updatedAt]));
}

async function send(world: MemoryWorld, { sent, stepMs }: WriterRun, version: () => number) {
  for (const each of sent) {
    vi.setSystemTime(Date.now() + stepMs);
    if (each === 'tick') await world.tick(partitionOf(CHAIN));
    else {
      const record = activityOf(each, { details: detailsOf(each, String(version())) });
      await world.send(ACTIVITIES, CHAIN, activityValue(ACTIVITY_SCHEMA, record));
    }
  }
}

/** Runs writers in sequence, each killed, then a writer that may finish, while a replica follows. */
async function runAll(runs: readonly WriterRun[]) {
  const world = createMemoryWorld();
  const follower = new Follower(world);
  let versions = 0;
  for (const each of runs) {
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
  const inOrder = world.activities().toSorted((a, b) => a.offset - b.offset);
  const last = new Map(inOrder.map((row) => [row.id, String(toShownActivity(row).members)]));
  return { world, follower, last };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('a replica follows the feed without gaps or repeats while writers are killed and their store fails', async () => {
  const property = fc.asyncProperty(fc.array(writerRun, { minLength: 1, maxLength: 4 }), async (runs) => {
    vi.setSystemTime(NOW_MS);
    const { world, follower, last } = await runAll(runs);
    const times = follower.seen.map(({ updatedAt }) => updatedAt);
    expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
    expect(new Map(follower.seen.map(({ id, members }) => [id, String(members)]))).toEqual(last);
    // Duplicates may exist, which readers drop and merges remove: an insert of a killed writer that finished after
    // its token was lost, beside the insert of the next owner.
    const stored = new Set(world.activities().map(({ offset }) => offset));
    const sent = runs.flatMap((each) => each.sent).filter((each) => each !== 'tick');
    expect(stored.size).toBe(sent.length);
    expect(world.deadLetters(ACTIVITIES)).toEqual([]);
    // At the end of the feed, the replica has all rows up to the watermark, and no row is ever added below it.
    for (const { watermark, count } of follower.arrivals) {
      const replica = lastUpTo(follower.seen.slice(0, count), Number.POSITIVE_INFINITY);
      for (const [id, us] of lastUpTo(world.activities(), watermark))
        expect(replica.get(id), id).toBeGreaterThanOrEqual(us);
    }
    for (const { watermark, stored: before } of follower.audits) expect(before).toEqual(storedUpTo(world, watermark));
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 80, all: 400 }) });
}, 90_000);
