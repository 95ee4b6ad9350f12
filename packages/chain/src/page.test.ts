import { expect, it } from 'vitest';
import { START_GAP } from './cursor.ts';
import { createReadPage, type FeedEntry, type FeedSource } from './page.ts';
import type { PageQuery } from './store.ts';
import { NO_FILTERS } from './store.ts';
import { activityRow } from './test/rows.ts';
import { toShownActivity } from './wire.ts';

const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const query: PageQuery = {
  chain: 'main',
  filters: NO_FILTERS,
  gap: START_GAP,
  direction: 'next',
  limit: 2,
  horizon: 1_000_000,
};

/** Simulates a feed with one version per microsecond. From `firstOutdated`, `outdated` versions are superseded. */
function createSource(versions: number, outdated: number, { workMaxMs, firstOutdated = 1 }: SourceOptions = {}) {
  const requested: number[] = [];
  const source: FeedSource = {
    async entries({ gap, direction }, limit) {
      requested.push(limit);
      const first = gap.side === 'after' ? gap.updatedAt + 1 : gap.updatedAt;
      const [from, step] = direction === 'next' ? [Math.max(1, first), 1] : [first - 1, -1];
      const positions = Array.from({ length: limit }, (_, index) => from + index * step);
      const found = positions.filter((us) => us >= 1 && us <= versions);
      const entries = found.map((us) => ({
        ...versionAt(us),
        isOutdated: us >= firstOutdated && us < firstOutdated + outdated,
      }));
      return { entries, isFull: entries.length === limit, continueAt: null };
    },
  };
  return { requested, readPage: createReadPage(source, workMaxMs) };
}

interface SourceOptions {
  readonly workMaxMs?: number;
  readonly firstOutdated?: number;
}

/** On a busy machine, a time limit would end pages before the entry limit does. */
const WITHOUT_TIME_LIMIT: SourceOptions = { workMaxMs: Number.POSITIVE_INFINITY };

const versionAt = (us: number) => toShownActivity(activityRow({ updatedAt: us, id: idOf(us) }));
const supersessionAt = (us: number, isOutdated: boolean): FeedEntry => ({
  updatedAt: us,
  id: idOf(us),
  partition: 0,
  isOutdated,
  members: Buffer.alloc(0),
});

/** Creates a reader for a feed with these entries, from the beginning in the `next` direction. */
const createPageOf = (entries: readonly FeedEntry[]) =>
  createReadPage({
    async entries({ gap }, limit) {
      const remaining = entries.filter(({ updatedAt }) => updatedAt > (gap.side === 'after' ? gap.updatedAt : -1));
      const read = remaining.slice(0, limit);
      return { entries: read, isFull: read.length === limit, continueAt: null };
    },
  });

it('after all activities are updated, a page is filled in a few queries of growing size', async () => {
  const { requested, readPage } = createSource(6_000, 5_000, WITHOUT_TIME_LIMIT);
  const page = await readPage(query);
  expect(page.rows.map(({ updatedAt }) => updatedAt)).toEqual([5_001, 5_002]);
  expect(page.next).toMatchObject({ side: 'after', updatedAt: 5_002 });
  expect(requested).toEqual([10, 40, 160, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500]);
});

it('after all activities are updated, a page ends empty at the read limit, and the next page continues', async () => {
  const { readPage } = createSource(100_000, 60_000, WITHOUT_TIME_LIMIT);
  const pages = [await readPage(query)];
  while (pages.at(-1)!.rows.length === 0) pages.push(await readPage({ ...query, gap: pages.at(-1)!.next }));
  expect(pages[0]).toMatchObject({ rows: [], previous: START_GAP, next: { side: 'after', updatedAt: 20_167 } });
  expect(pages.at(-1)!.rows.map(({ updatedAt }) => updatedAt)).toEqual([60_001, 60_002]);
  expect(pages.length).toBeLessThan(5);
});

it('a page that takes too long ends early, and its cursor continues after the rows read so far', async () => {
  const { requested, readPage } = createSource(1_000, 100, { workMaxMs: 0 });
  const page = await readPage(query);
  expect(page).toMatchObject({ rows: [], next: { side: 'after', updatedAt: 9 } });
  expect((await readPage({ ...query, gap: page.next })).next).toMatchObject({ side: 'after', updatedAt: 18 });
  expect(requested).toEqual([10, 10]);
});

it('after all activities are updated, a page in the previous direction ends at the read limit', async () => {
  const { readPage } = createSource(30_000, 30_000, WITHOUT_TIME_LIMIT);
  const gap = { ...START_GAP, side: 'before', updatedAt: 30_001 } as const;
  const page = await readPage({ ...query, gap, direction: 'previous' });
  expect(page).toMatchObject({ rows: [], next: gap, previous: { side: 'before', updatedAt: 30_001 - 20_167 } });
});

it("a page needs one query if few of the feed's versions are outdated", async () => {
  const { requested, readPage } = createSource(1_000, 79);
  expect((await readPage({ ...query, limit: 160 })).rows).toHaveLength(160);
  expect(requested).toEqual([240]);
});

it("a page needs a second query for the missing rows if too many of the feed's versions are outdated", async () => {
  const { requested, readPage } = createSource(1_000, 90);
  expect((await readPage({ ...query, limit: 160 })).rows).toHaveLength(160);
  expect(requested).toEqual([240, 33]);
});

it('a page whose last row follows thousands of outdated versions is filled in queries of growing size', async () => {
  const { requested, readPage } = createSource(6_000, 3_000, { firstOutdated: 160 });
  expect((await readPage({ ...query, limit: 160 })).rows.at(-1)).toMatchObject({ updatedAt: 3_160 });
  expect(requested).toEqual([240, 10, 40, 160, 500, 500, 500, 500, 500, 500]);
});

it('a page omits a version if any of its entries is outdated', async () => {
  for (const first of [
    [supersessionAt(1, true), { ...versionAt(1), isOutdated: false }],
    [{ ...versionAt(1), isOutdated: false }, supersessionAt(1, true)],
    [
      { ...versionAt(1), isOutdated: false },
      { ...versionAt(1), isOutdated: true },
      { ...versionAt(1), isOutdated: false },
    ],
  ]) {
    const page = await createPageOf([...first, { ...versionAt(2), isOutdated: false }])(query);
    expect(page.rows.map(({ updatedAt }) => updatedAt)).toEqual([2]);
  }
});

it('a page contains a version once if its successor is still above the horizon', async () => {
  const page = await createPageOf([
    supersessionAt(1, false),
    { ...versionAt(1), isOutdated: false },
    { ...versionAt(1), isOutdated: false },
  ])(query);
  expect(page.rows.map(({ members }) => members)).toEqual([versionAt(1).members]);
});

it("a query's last version is read again by the next query, because more entries of the version may follow", async () => {
  // A page of two rows reads ten entries. The eleventh entry supersedes the tenth entry's version.
  const before = Array.from({ length: 9 }, (_, index) => supersessionAt(index + 1, true));
  const page = await createPageOf([
    ...before,
    { ...versionAt(10), isOutdated: false },
    supersessionAt(10, true),
    { ...versionAt(11), isOutdated: false },
  ])(query);
  expect(page.rows.map(({ updatedAt }) => updatedAt)).toEqual([11]);
});

it('a page continues past a version with thousands of duplicate entries', async () => {
  const copies = Array.from({ length: 3_000 }, () => ({ ...versionAt(1), isOutdated: false }));
  const page = await createPageOf([...copies, { ...versionAt(2), isOutdated: false }])(query);
  expect(page.rows.map(({ updatedAt }) => updatedAt)).toEqual([1, 2]);
});

it('a page omits a supersession without its version', async () => {
  const page = await createPageOf([supersessionAt(1, false), { ...versionAt(2), isOutdated: false }])(query);
  expect(page.rows.map(({ updatedAt }) => updatedAt)).toEqual([2]);
});

it('a page ends where the source stopped reading early, and its cursor continues from there', async () => {
  const stoppedAt = { side: 'after', updatedAt: 500, id: idOf(0) } as const;
  const entries = [{ ...versionAt(1), isOutdated: false }];
  const readPage = createReadPage({ entries: async () => ({ entries, isFull: false, continueAt: stoppedAt }) });
  expect(await readPage(query)).toMatchObject({ rows: [{ updatedAt: 1 }], next: stoppedAt });
});
