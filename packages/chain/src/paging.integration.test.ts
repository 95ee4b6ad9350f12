import { randomUUID } from 'node:crypto';
import type { Direction } from '@playline/contracts';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Gap, START_GAP } from './cursor.ts';
import type { ActivityRow } from './rows.ts';
import type { ActivityFilters, ShownActivity } from './store.ts';
import { NO_FILTERS } from './store.ts';
import { putActivities } from './test/memory/index.ts';
import { naiveFeed, naivePage } from './test/naive-feed.ts';
import { openClickHouseTestChain, openMemoryTestChain, type TestChain } from './test/open-chains.ts';
import { activityRow, addressOf, NOON_US } from './test/rows.ts';
import { toShownActivity } from './wire.ts';

type Action =
  | { kind: 'put'; updates: readonly { activity: number; stepUs: number }[] }
  /** Raises the horizon past this fraction of the versions above it. */
  | { kind: 'raise'; fraction: number }
  | { kind: 'read'; readers: readonly Reader[] };

/** Reads from an earlier page's gap, counted back from the newest page. A late reader uses an older horizon. */
interface Reader {
  readonly gap: number;
  readonly direction: Direction;
  readonly limit: number;
  readonly filters: ActivityFilters;
  readonly isLate: boolean;
}

const ACTIVITIES = 6;
const contractOf = (activity: number) => addressOf(activity % 2);
const typeOf = (activity: number) => (activity % 3 === 0 ? 'burn' : 'mint');
const indexedAtOf = (activity: number) => NOON_US - activity;

// With step 0, several versions share a microsecond. Larger steps fit in a read window, span windows or span months.
const stepUs = fc.constantFrom(0, 1, 1_000_000, 3_600_000_000, 40 * 86_400_000_000);
const updates = fc.array(fc.record({ activity: fc.nat(ACTIVITIES - 1), stepUs }), { minLength: 1, maxLength: 8 });
const filters: fc.Arbitrary<ActivityFilters> = fc.record({
  contractAddress: fc.option(fc.constantFrom(contractOf(0), contractOf(1))),
  type: fc.option(fc.constantFrom('mint' as const, 'burn' as const, 'sale' as const)),
  fromIndexedAt: fc.option(fc.nat(ACTIVITIES).map(indexedAtOf), { freq: 1 }),
  toIndexedAt: fc.option(fc.nat(ACTIVITIES).map(indexedAtOf), { freq: 1 }),
});
/** Generates tenths, because most doubles that fast-check generates are almost 0. */
const fraction = fc.nat(10).map((tenths) => tenths / 10);
const direction = fc.constantFrom('next' as const, 'previous' as const);
const limit = fc.integer({ min: 1, max: 4 });
const reader: fc.Arbitrary<Reader> = fc.record({
  gap: fc.nat(20),
  direction,
  limit,
  filters: fc.oneof(fc.constant(NO_FILTERS), filters),
  isLate: fc.boolean(),
});
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('put' as const), updates }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('raise' as const), fraction }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      readers: fc.array(reader, { minLength: 1, maxLength: 6 }),
    }),
  },
);

class Feed {
  readonly chain = `test-${randomUUID()}`;
  readonly versions: ActivityRow[] = [];
  readonly #ids = Array.from({ length: ACTIVITIES }, (_, index) => this.#idOf(index));
  readonly #chains: TestChain;
  /** All horizons so far, oldest first. */
  readonly horizons = [NOON_US];
  #lastUs = NOON_US;

  constructor(chains: TestChain) {
    this.#chains = chains;
  }

  get horizon(): number {
    return this.horizons.at(-1)!;
  }

  /** Both halves of an id sort like the index, so the model does not depend on how UUIDs are compared. */
  #idOf(index: number): string {
    const tail = randomUUID().slice(24);
    return `0000000${index}-0000-4000-8000-0000${index}${tail.slice(0, 7)}`;
  }

  // Adds versions after all versions so far and never below the horizon, like a writer. A block contains an activity
  // at most once per microsecond.
  async put(updates: readonly { activity: number; stepUs: number }[]): Promise<void> {
    const rows: ActivityRow[] = [];
    if (this.versions.length > 0) this.#lastUs++;
    for (const { activity, stepUs: step } of updates) {
      const isTaken = [...this.versions, ...rows].some(
        ({ id, updatedAt }) => id === this.#ids[activity] && updatedAt === this.#lastUs + step,
      );
      this.#lastUs += isTaken ? step + 1 : step;
      this.#lastUs = Math.max(this.#lastUs, this.horizon);
      const constants = {
        type: typeOf(activity),
        contractAddress: contractOf(activity),
        indexedAt: indexedAtOf(activity),
      } as const;
      rows.push(activityRow({ chain: this.chain, id: this.#ids[activity]!, updatedAt: this.#lastUs, ...constants }));
    }
    await putActivities(this.#chains.activities, rows);
    this.versions.push(...rows);
  }

  raise(fraction: number): void {
    this.horizons.push(this.horizon + Math.ceil((this.#lastUs + 1 - this.horizon) * fraction));
  }
}

async function run(chains: TestChain, actions: readonly Action[]): Promise<void> {
  const feed = new Feed(chains);
  const gaps: Gap[] = [START_GAP];
  for (const step of actions) {
    if (step.kind === 'put') await feed.put(step.updates);
    else if (step.kind === 'raise') feed.raise(step.fraction);
    else {
      const read = await Promise.all(step.readers.map((reader) => readOne(chains, feed, { ...reader, gaps })));
      gaps.push(...read.flat());
    }
  }
}

async function readOne(
  chains: TestChain,
  feed: Feed,
  { gaps, isLate, ...reader }: Reader & { gaps: readonly Gap[] },
): Promise<Gap[]> {
  const horizon = isLate ? (feed.horizons.at(-2) ?? feed.horizon) : feed.horizon;
  const gap = gaps.at(-1 - (reader.gap % gaps.length))!;
  const query = { ...reader, chain: feed.chain, gap, horizon };
  const page = await chains.reader.readPage(query);
  expect(page.rows).toEqual(naivePage(feed.versions, query).map(toShownActivity));
  return [page.previous, page.next];
}

const follow = async (
  chains: TestChain,
  feed: Feed,
  from: { gap: Gap; direction: Direction; limit: number; filters: ActivityFilters },
): Promise<{ rows: ShownActivity[]; gap: Gap }> => {
  const rows: ShownActivity[] = [];
  let { gap } = from;
  for (;;) {
    const page = await chains.reader.readPage({ ...from, chain: feed.chain, gap, horizon: feed.horizon });
    gap = from.direction === 'next' ? page.next : page.previous;
    if (page.rows.length === 0) return { rows, gap };
    rows.push(...(from.direction === 'next' ? page.rows : page.rows.toReversed()));
  }
};

describe.each([
  ['memory', openMemoryTestChain, { numRuns: runsOf({ quick: 100, all: 500 }) }],
  // Shrinking a failure would take minutes with a real store.
  ['ClickHouse', openClickHouseTestChain, { numRuns: runsOf({ quick: 4, all: 25 }), endOnFailure: true }],
] as const)('the feed of a chain in %s', (_where, open, runs) => {
  let chains: TestChain;
  beforeAll(async () => {
    chains = await open();
  });
  afterAll(() => chains.close());

  it('concurrent readers get the rows of a full scan from any gap, in both directions, between updates', async () => {
    const programs = fc.array(action, { minLength: 3, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(programs, (actions) => run(chains, actions)),
      runs,
    );
  });

  it('a reader that follows the feed receives the latest version of every activity', async () => {
    const rounds = fc.array(fc.record({ updates, fraction }), { maxLength: 6 });
    const readers = fc.record({ limit, filters: fc.oneof(fc.constant(NO_FILTERS), filters) });
    await fc.assert(
      fc.asyncProperty(rounds, readers, async (updateRounds, reader) => {
        const feed = new Feed(chains);
        const replica = new Map<string, ShownActivity>();
        let gap: Gap = START_GAP;
        for (const round of [...updateRounds, { updates: [], fraction: 1 }]) {
          if (round.updates.length > 0) await feed.put(round.updates);
          feed.raise(round.fraction);
          const read = await follow(chains, feed, { ...reader, gap, direction: 'next' });
          for (const row of read.rows) replica.set(row.id, row);
          gap = read.gap;
        }
        const last = naiveFeed(feed.versions, feed.horizon, reader.filters).map(toShownActivity);
        expect([...replica.values()].toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
          last.toSorted((a, b) => a.id.localeCompare(b.id)),
        );
        const backward = await follow(chains, feed, { ...reader, gap, direction: 'previous' });
        expect(backward.rows).toEqual(last.toReversed());
        // The page before the first row is empty, and its `next` cursor returns to the first row.
        const forward = await follow(chains, feed, { ...reader, gap: backward.gap, direction: 'next' });
        expect(forward.rows).toEqual(last);
      }),
      { ...runs, numRuns: Math.ceil(runs.numRuns / 2) },
    );
  });
});
