import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import { ClickHouseFault } from '@playline/stores';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { byNewest } from './activities.ts';
import {
  type ActivityPosition,
  type ActivitySource,
  type ActivityWindow,
  type ReadActivityWindow,
  type SearchPage,
  searchBackwards,
} from './activity-search.ts';

const NOW_US = Date.parse('2026-11-20T10:00:00Z') * 1_000;
const DAY_US = 86_400_000_000;
const FROM: ActivityPosition = { updatedUs: NOW_US + 1, id: '' };
const BOUNDS = { from: FROM, firstSpanUs: 31 * DAY_US, timeMaxMs: 60_000 };

const refusal = () => new PublicError('VALIDATION_ERROR', { cause: new ClickHouseFault(500, '158', 'TOO_MANY_ROWS') });

/** Reads rows in memory like the view. @param bound a window with more rows is refused */
function createRead(rows: readonly ActivityPosition[], bound: number): ReadActivityWindow<ActivityPosition> {
  return async ({ sinceUs, untilUs, before, rowsMax }) => {
    const isInside = (row: ActivityPosition) =>
      row.updatedUs < untilUs || (before !== '' && byNewest(row, { updatedUs: untilUs, id: before }) > 0);
    const found = rows.filter((row) => row.updatedUs >= sinceUs && row.updatedUs <= untilUs && isInside(row));
    if (found.length > bound) throw refusal();
    return found.toSorted(byNewest).slice(0, rowsMax);
  };
}

/** Finds starts in memory like the view, for one contract. */
const createFindStart =
  (rows: readonly ActivityPosition[]): ActivitySource<ActivityPosition>['findStart'] =>
  async ({ sinceUs, untilUs }, newer) =>
    rows.filter(({ updatedUs }) => updatedUs >= sinceUs && updatedUs < untilUs).toSorted(byNewest)[newer]?.updatedUs ??
    0;

const createSource = (rows: readonly ActivityPosition[], bound: number): ActivitySource<ActivityPosition> => ({
  read: createRead(rows, bound),
  findStart: createFindStart(rows),
  refusalsBeforeFindStart: 1,
});

async function readAll(source: ActivitySource<ActivityPosition>, over: { max?: number; timeMaxMs?: number } = {}) {
  const pages: (readonly ActivityPosition[])[] = [];
  for (let from: ActivityPosition | null = FROM; from !== null; ) {
    const bounds = { ...BOUNDS, max: 3, ...over, from };
    const page: SearchPage<ActivityPosition> = await searchBackwards(source, bounds);
    pages.push(page.activities);
    from = page.next;
  }
  return pages;
}

it('searchBackwards returns each row once, newest first, for any distribution of rows, read limit and answer of findStart', async () => {
  const gap = fc.constantFrom(1, 1, 1, 2, 1_000, 1_000_000, 600_000_000, DAY_US, 400 * DAY_US);
  const small = fc.integer({ min: 1, max: 6 });
  // Microseconds before the end of the window; null when findStart is refused, undefined when its answer is right.
  const answers = fc.array(fc.option(fc.oneof(gap, fc.constant(NOW_US)), { nil: null }), { maxLength: 5 });
  const property = fc.asyncProperty(
    fc.array(gap, { minLength: 1, maxLength: 30 }),
    ...([small, small, small, answers] as const),
    // biome-ignore lint/complexity/useMaxParams: one for each of the values above
    async (gaps, bound, max, refusalsBeforeFindStart, starts) => {
      let updatedUs = NOW_US + 1;
      const rows = gaps.map((each) => {
        updatedUs -= each;
        return { updatedUs, id: randomUUID() };
      });
      let calls = 0;
      const findStart: ActivitySource<ActivityPosition>['findStart'] = async (window, newer) => {
        const start = starts[calls++];
        if (start === null) throw refusal();
        return start === undefined ? createFindStart(rows)(window, newer) : window.untilUs - start;
      };
      const pages = await readAll({ read: createRead(rows, bound), findStart, refusalsBeforeFindStart }, { max });
      expect(pages.flat()).toEqual(rows);
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(max);
    },
  );
  await fc.assert(property, { numRuns: 200 });
});

it('searchBackwards returns each row of one microsecond once, when one query may read them', async () => {
  const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() })).toSorted(byNewest);
  const older = { updatedUs: NOW_US - 1, id: randomUUID() };
  expect((await readAll(createSource([...rows, older], 20))).flat()).toEqual([...rows, older]);
});

it('searchBackwards gets further with each page, even without any time', async () => {
  const rows = [1, 2, 3, DAY_US, 900 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
  expect((await readAll(createSource(rows, 2), { timeMaxMs: 0 })).flat()).toEqual(rows);
});

it('searchBackwards throws the refusal when a single microsecond exceeds the read limit', async () => {
  const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() }));
  await expect(readAll(createSource(rows, 19))).rejects.toThrow(PublicError);
});

/** A million versions, one in each microsecond before `NOW_US`; a query may read a fifth of them. */
function createMillion() {
  const calls = { windows: 0, starts: 0 };
  const rowsIn = ({ sinceUs, untilUs }: ActivityWindow) =>
    Math.max(0, Math.min(untilUs, NOW_US) - Math.max(sinceUs, NOW_US - 1_000_000));
  const read: ReadActivityWindow<ActivityPosition> = async (window) => {
    calls.windows++;
    if (rowsIn(window) > 200_000) throw refusal();
    const count = Math.min(window.rowsMax, rowsIn(window));
    return Array.from({ length: count }, (_, at) => ({ updatedUs: NOW_US - at, id: randomUUID() }));
  };
  return { calls, read };
}

it('a page of a million versions in one second takes three queries: a refused one, findStart, and the page', async () => {
  const { calls, read } = createMillion();
  const findStart: ActivitySource<ActivityPosition>['findStart'] = async ({ untilUs }, newer) => {
    calls.starts++;
    return Math.min(untilUs, NOW_US) - newer;
  };
  const page = await searchBackwards({ read, findStart, refusalsBeforeFindStart: 1 }, { ...BOUNDS, max: 100 });
  expect([page.activities.length, calls]).toEqual([100, { windows: 2, starts: 1 }]);
});

it('a history within the read limit takes two queries: the first window, and all time before it', async () => {
  const rows = [1, 40 * DAY_US, 9_000 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
  const windows: number[] = [];
  const read: ReadActivityWindow<ActivityPosition> = (window) => {
    windows.push(window.sinceUs);
    return createRead(rows, 3)(window);
  };
  const page = await searchBackwards({ ...createSource(rows, 3), read }, { ...BOUNDS, max: 10 });
  expect([page.activities, page.next, windows]).toEqual([rows, null, [FROM.updatedUs - 31 * DAY_US, 0]]);
});

it('searchBackwards ends within thirty queries when windows over thirty years are refused regardless of their rows', async () => {
  const rows = [1, 400 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
  let windows = 0;
  const read: ReadActivityWindow<ActivityPosition> = async (window) => {
    windows++;
    if (window.untilUs - window.sinceUs > 30 * 365 * DAY_US) throw refusal();
    return createRead(rows, 10)(window);
  };
  const page = await searchBackwards({ ...createSource(rows, 10), read }, { ...BOUNDS, max: 10 });
  expect([page.activities, page.next, windows <= 30]).toEqual([rows, null, true]);
});

it('a page of a million versions takes at most twenty queries when findStart is refused', async () => {
  const { calls, read } = createMillion();
  const source = { read, findStart: () => Promise.reject(refusal()), refusalsBeforeFindStart: 1 };
  const page = await searchBackwards(source, { ...BOUNDS, max: 100 });
  expect([page.activities.length, calls.windows <= 20]).toEqual([100, true]);
});

it('searchBackwards throws any fault that is not a refusal', async () => {
  const [fails, refused] = [() => Promise.reject(new Error('connection lost')), () => Promise.reject(refusal())];
  for (const source of [
    { read: fails, findStart: fails },
    { read: refused, findStart: fails },
  ])
    await expect(searchBackwards({ ...source, refusalsBeforeFindStart: 1 }, { ...BOUNDS, max: 1 })).rejects.toThrow(
      'connection lost',
    );
});
