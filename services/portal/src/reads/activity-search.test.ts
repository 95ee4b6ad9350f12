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
const BOUNDS = { from: FROM, firstWindowUs: 31 * DAY_US, timeMaxMs: 60_000 };

const cause = new ClickHouseFault(500, '158', 'TOO_MANY_ROWS');
const limitError = () => new PublicError('VALIDATION_ERROR', { cause });

/** Simulates the view with in-memory rows. @param limit maximum number of rows in a window */
function createRead(rows: readonly ActivityPosition[], limit: number): ReadActivityWindow<ActivityPosition> {
  return async ({ sinceUs, untilUs, before, rowsMax }) => {
    const isInside = (row: ActivityPosition) =>
      row.updatedUs < untilUs || (before !== '' && byNewest(row, { updatedUs: untilUs, id: before }) > 0);
    const found = rows.filter((row) => row.updatedUs >= sinceUs && row.updatedUs <= untilUs && isInside(row));
    if (found.length > limit) throw limitError();
    return found.toSorted(byNewest).slice(0, rowsMax);
  };
}

/** Simulates the view that finds the start of a page, for one contract. */
const createFindStart =
  (rows: readonly ActivityPosition[]): ActivitySource<ActivityPosition>['findStart'] =>
  async ({ sinceUs, untilUs }, newer) =>
    rows.filter(({ updatedUs }) => updatedUs >= sinceUs && updatedUs < untilUs).toSorted(byNewest)[newer]?.updatedUs ??
    0;

const createSource = (rows: readonly ActivityPosition[], limit: number): ActivitySource<ActivityPosition> => ({
  read: createRead(rows, limit),
  findStart: createFindStart(rows),
  rejectionsBeforeFindStart: 1,
});

async function readAll(source: ActivitySource<ActivityPosition>, overrides: { max?: number; timeMaxMs?: number } = {}) {
  const pages: (readonly ActivityPosition[])[] = [];
  for (let from: ActivityPosition | null = FROM; from !== null; ) {
    const bounds = { ...BOUNDS, max: 3, ...overrides, from };
    const page: SearchPage<ActivityPosition> = await searchBackwards(source, bounds);
    pages.push(page.activities);
    from = page.next;
  }
  return pages;
}

it('searchBackwards returns each row once, newest first, for any rows, read limit and findStart result', async () => {
  const gap = fc.constantFrom(1, 1, 1, 2, 1_000, 1_000_000, 600_000_000, DAY_US, 400 * DAY_US);
  const small = fc.integer({ min: 1, max: 6 });
  // In microseconds before the end of the window; null if findStart fails, undefined if it returns the true start.
  const startOffsets = fc.array(fc.option(fc.oneof(gap, fc.constant(NOW_US)), { nil: null }), { maxLength: 5 });
  const property = fc.asyncProperty(
    fc.array(gap, { minLength: 1, maxLength: 30 }),
    ...([small, small, small, startOffsets] as const),
    // biome-ignore lint/complexity/useMaxParams: one per generated value
    async (gaps, limit, max, rejectionsBeforeFindStart, starts) => {
      let updatedUs = NOW_US + 1;
      const rows = gaps.map((each) => {
        updatedUs -= each;
        return { updatedUs, id: randomUUID() };
      });
      let calls = 0;
      const findStart: ActivitySource<ActivityPosition>['findStart'] = async (window, newer) => {
        const start = starts[calls++];
        if (start === null) throw limitError();
        return start === undefined ? createFindStart(rows)(window, newer) : window.untilUs - start;
      };
      const pages = await readAll({ read: createRead(rows, limit), findStart, rejectionsBeforeFindStart }, { max });
      expect(pages.flat()).toEqual(rows);
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(max);
    },
  );
  await fc.assert(property, { numRuns: 200 });
});

it('searchBackwards returns each row once if one microsecond contains more rows than a page', async () => {
  const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() })).toSorted(byNewest);
  const older = { updatedUs: NOW_US - 1, id: randomUUID() };
  expect((await readAll(createSource([...rows, older], 20))).flat()).toEqual([...rows, older]);
});

it('searchBackwards makes progress with each page, even if the time limit is zero', async () => {
  const rows = [1, 2, 3, DAY_US, 900 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
  expect((await readAll(createSource(rows, 2), { timeMaxMs: 0 })).flat()).toEqual(rows);
});

it('searchBackwards throws the limit error if a single microsecond exceeds the read limit', async () => {
  const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() }));
  await expect(readAll(createSource(rows, 19))).rejects.toThrow(PublicError);
});

/** A million versions, one per microsecond before `NOW_US`. One query can read a fifth of them. */
function createMillion() {
  const calls = { windows: 0, starts: 0 };
  const rowsIn = ({ sinceUs, untilUs }: ActivityWindow) =>
    Math.max(0, Math.min(untilUs, NOW_US) - Math.max(sinceUs, NOW_US - 1_000_000));
  const read: ReadActivityWindow<ActivityPosition> = async (window) => {
    calls.windows++;
    if (rowsIn(window) > 200_000) throw limitError();
    const count = Math.min(window.rowsMax, rowsIn(window));
    return Array.from({ length: count }, (_, index) => ({ updatedUs: NOW_US - index, id: randomUUID() }));
  };
  return { calls, read };
}

it('the first page of a million versions takes three queries: a rejected window, findStart and the page', async () => {
  const { calls, read } = createMillion();
  const findStart: ActivitySource<ActivityPosition>['findStart'] = async ({ untilUs }, newer) => {
    calls.starts++;
    return Math.min(untilUs, NOW_US) - newer;
  };
  const page = await searchBackwards({ read, findStart, rejectionsBeforeFindStart: 1 }, { ...BOUNDS, max: 100 });
  expect([page.activities.length, calls]).toEqual([100, { windows: 2, starts: 1 }]);
});

it('a history within the read limit takes two queries: the first window and all time before it', async () => {
  const rows = [1, 40 * DAY_US, 9_000 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
  const windows: number[] = [];
  const read: ReadActivityWindow<ActivityPosition> = (window) => {
    windows.push(window.sinceUs);
    return createRead(rows, 3)(window);
  };
  const page = await searchBackwards({ ...createSource(rows, 3), read }, { ...BOUNDS, max: 10 });
  expect([page.activities, page.next, windows]).toEqual([rows, null, [FROM.updatedUs - 31 * DAY_US, 0]]);
});

it('searchBackwards sends at most 30 queries if every window longer than 30 years is rejected', async () => {
  const rows = [1, 400 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
  let windows = 0;
  const read: ReadActivityWindow<ActivityPosition> = async (window) => {
    windows++;
    if (window.untilUs - window.sinceUs > 30 * 365 * DAY_US) throw limitError();
    return createRead(rows, 10)(window);
  };
  const page = await searchBackwards({ ...createSource(rows, 10), read }, { ...BOUNDS, max: 10 });
  expect([page.activities, page.next, windows <= 30]).toEqual([rows, null, true]);
});

it('the first page of a million versions takes at most 20 queries if findStart exceeds the read limit', async () => {
  const { calls, read } = createMillion();
  const source = { read, findStart: () => Promise.reject(limitError()), rejectionsBeforeFindStart: 1 };
  const page = await searchBackwards(source, { ...BOUNDS, max: 100 });
  expect([page.activities.length, calls.windows <= 20]).toEqual([100, true]);
});

it('searchBackwards rethrows errors that are not caused by read limits', async () => {
  const fails = () => Promise.reject(new Error('connection lost'));
  const exceedsLimit = () => Promise.reject(limitError());
  for (const source of [
    { read: fails, findStart: fails },
    { read: exceedsLimit, findStart: fails },
  ])
    await expect(searchBackwards({ ...source, rejectionsBeforeFindStart: 1 }, { ...BOUNDS, max: 1 })).rejects.toThrow(
      'connection lost',
    );
});
