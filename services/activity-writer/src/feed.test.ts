import { setImmediate as nextTurn } from 'node:timers/promises';
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

interface WriterRun {
  readonly rowsMax: number;
  readonly turns: number;
  /** Outcomes of the writer's first inserts. Later inserts succeed. */
  readonly leftovers: readonly (Leftover | 'stored')[];
  /** Records to send: ticks, or activities by number. A repeated number is an update. */
  readonly sent: readonly (number | 'tick')[];
  readonly stepMs: number;
  /** Event loop turns between two pages that the follower reads, and rows per page. */
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

/** A replica that reads the feed page by page from the start. */
class Follower {
  readonly seen: ShownActivity[] = [];
  /** For each empty page: the watermark read before the page, and the number of rows read so far. */
  readonly arrivals: { watermark: number; count: number }[] = [];
  /** For each watermark that was read: the contents of every table up to this watermark. */
  readonly audits: { watermark: number; stored: number[][] }[] = [];
  readonly #world: MemoryWorld;
  #gap = START_GAP;

  constructor(world: MemoryWorld) {
    this.#world = world;
  }

  /** @returns true if the replica's position advanced */
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

function lastUpTo(rows: readonly Position[], upTo: number): Map<string, number> {
  const versions = rows.filter(({ updatedAt }) => updatedAt <= upTo).toSorted((a, b) => a.updatedAt - b.updatedAt);
  return new Map(versions.map(({ id, updatedAt }) => [id, updatedAt]));
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

/** Runs writers that are killed one after another, then a writer that finishes, while a replica follows the feed. */
async function runAll(runs: readonly WriterRun[]) {
  const world = createMemoryWorld();
  const follower = new Follower(world);
  let versions = 0;
  for (const each of runs) {
    for (const leftover of each.leftovers)
      if (leftover !== 'stored')
        world.store.failNext(new StoreFault('busy', { kind: 'transient', code: 'BUSY' }), leftover);
    await send(world, each, () => versions++);
    const writer = world.open(each.rowsMax);
    for (let count = 0; count < each.turns; count++) {
      await nextTurn();
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

it('a replica reads the feed without gaps or duplicates while writers are killed and inserts fail', async () => {
  const property = fc.asyncProperty(fc.array(writerRun, { minLength: 1, maxLength: 4 }), async (runs) => {
    vi.setSystemTime(NOW_MS);
    const { world, follower, last } = await runAll(runs);
    const times = follower.seen.map(({ updatedAt }) => updatedAt);
    expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
    expect(new Map(follower.seen.map(({ id, members }) => [id, String(members)]))).toEqual(last);
    // A killed writer's insert may complete after its token expired, next to the next owner's insert. Readers skip the
    // duplicates and merges remove them, so only distinct offsets are compared.
    const stored = new Set(world.activities().map(({ offset }) => offset));
    const sent = runs.flatMap((each) => each.sent).filter((each) => each !== 'tick');
    expect(stored.size).toBe(sent.length);
    expect(world.deadLetters(ACTIVITIES)).toEqual([]);
    // At each end of the feed, the replica had all rows up to the watermark, and no row was added below it later.
    for (const { watermark, count } of follower.arrivals) {
      const replica = lastUpTo(follower.seen.slice(0, count), Number.POSITIVE_INFINITY);
      for (const [id, us] of lastUpTo(world.activities(), watermark))
        expect(replica.get(id), id).toBeGreaterThanOrEqual(us);
    }
    for (const { watermark, stored: before } of follower.audits) expect(before).toEqual(storedUpTo(world, watermark));
  });
  await fc.assert(property, { numRuns: runsOf({ quick: 80, all: 400 }) });
}, 90_000);
