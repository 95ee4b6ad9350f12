import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import { ClickHouseFault } from '@playline/stores';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ActivityPosition,
  type ActivitySource,
  type ActivityWindow,
  byNewest,
  type ReadActivityWindow,
  searchBackwards,
} from './activities.ts';

const NOW_US = Date.parse('2026-11-20T10:00:00Z') * 1_000;
const DAY_US = 86_400_000_000;
const FROM: ActivityPosition = { updatedUs: NOW_US + 1, id: '' };
const TIME_MAX_MS = 60_000;
const BOUNDS = { from: FROM, firstSpanUs: 31 * DAY_US, timeMaxMs: TIME_MAX_MS };

const refusal = () => new PublicError('VALIDATION_ERROR', { cause: new ClickHouseFault(500, '158', 'TOO_MANY_ROWS') });

/** Reads rows in memory as the view does. @param bound a window with more rows is refused */
function createRead(rows: readonly ActivityPosition[], bound: number): ReadActivityWindow<ActivityPosition> {
  return async ({ sinceUs, untilUs, before, rowsMax }) => {
    const isInside = (row: ActivityPosition) =>
      row.updatedUs < untilUs || (before !== '' && byNewest(row, { updatedUs: untilUs, id: before }) > 0);
    const found = rows.filter((row) => row.updatedUs >= sinceUs && row.updatedUs <= untilUs && isInside(row));
    if (found.length > bound) throw refusal();
    return found.toSorted(byNewest).slice(0, rowsMax);
  };
}

/** Finds starts in memory as the view does, of one contract. */
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

/** Reads page after page to the end. */
async function readAll(source: ActivitySource<ActivityPosition>, over: { max?: number; timeMaxMs?: number } = {}) {
  const pages: (readonly ActivityPosition[])[] = [];
  for (let from: ActivityPosition | null = FROM; from !== null; ) {
    const page: { activities: readonly ActivityPosition[]; next: ActivityPosition | null } = await searchBackwards(
      source,
      {
        ...BOUNDS,
        max: 3,
        ...over,
        from,
      },
    );
    pages.push(page.activities);
    from = page.next;
  }
  return pages;
}

describe('the search backwards', () => {
  it('gives each row once, the newest first, however rows are spread, however few one question may read, and wherever a window is said to begin', async () => {
    const gap = fc.constantFrom(1, 1, 1, 2, 1_000, 1_000_000, 600_000_000, DAY_US, 400 * DAY_US);
    const small = fc.integer({ min: 1, max: 6 });
    // Microseconds before the end of the window; null where the question is refused, undefined where the answer is right.
    const told = fc.array(fc.option(fc.oneof(gap, fc.constant(NOW_US)), { nil: null }), { maxLength: 5 });
    const property = fc.asyncProperty(
      fc.array(gap, { minLength: 1, maxLength: 30 }),
      ...([small, small, small, told] as const),
      // biome-ignore lint/complexity/useMaxParams: one for each of the values above
      async (gaps, bound, max, refusalsBeforeStart, starts) => {
        let updatedUs = NOW_US + 1;
        const rows = gaps.map((each) => {
          updatedUs -= each;
          return { updatedUs, id: randomUUID() };
        });
        let asked = 0;
        const findStart: ActivitySource<ActivityPosition>['findStart'] = async (window, newer) => {
          const start = starts[asked++];
          if (start === null) throw refusal();
          return start === undefined ? createFindStart(rows)(window, newer) : window.untilUs - start;
        };
        const pages = await readAll(
          { read: createRead(rows, bound), findStart, refusalsBeforeFindStart: refusalsBeforeStart },
          { max },
        );
        expect(pages.flat()).toEqual(rows);
        expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(max);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  it('gives each row of one microsecond once, where one question may read them', async () => {
    const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() })).toSorted(byNewest);
    const older = { updatedUs: NOW_US - 1, id: randomUUID() };
    expect((await readAll(createSource([...rows, older], 20))).flat()).toEqual([...rows, older]);
  });

  it('gets further with each page, also where its time is over at once', async () => {
    const rows = [1, 2, 3, DAY_US, 900 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
    expect((await readAll(createSource(rows, 2), { timeMaxMs: 0 })).flat()).toEqual(rows);
  });

  it('throws the refusal when a single microsecond is too much', async () => {
    const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() }));
    await expect(readAll(createSource(rows, 19))).rejects.toThrow(PublicError);
  });

  /** A million versions of the last second before `NOW_US`, one each microsecond; a question may read a fifth of them. */
  function createMillion() {
    const asked = { windows: 0, starts: 0 };
    const rowsIn = ({ sinceUs, untilUs }: ActivityWindow) =>
      Math.max(0, Math.min(untilUs, NOW_US) - Math.max(sinceUs, NOW_US - 1_000_000));
    const read: ReadActivityWindow<ActivityPosition> = async (window) => {
      asked.windows++;
      if (rowsIn(window) > 200_000) throw refusal();
      const count = Math.min(window.rowsMax, rowsIn(window));
      return Array.from({ length: count }, (_, at) => ({ updatedUs: NOW_US - at, id: randomUUID() }));
    };
    return { asked, read };
  }

  it('asks three questions for a page of a million versions of one second: a refused one, where to begin, and the page', async () => {
    const { asked, read } = createMillion();
    const findStart: ActivitySource<ActivityPosition>['findStart'] = async ({ untilUs }, newer) => {
      asked.starts++;
      return Math.min(untilUs, NOW_US) - newer;
    };
    const page = await searchBackwards({ read, findStart, refusalsBeforeFindStart: 1 }, { ...BOUNDS, max: 100 });
    expect([page.activities.length, asked]).toEqual([100, { windows: 2, starts: 1 }]);
  });

  it('asks two questions to the end of what is no more than one may read: the first window, and all the time before', async () => {
    const rows = [1, 40 * DAY_US, 9_000 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
    const windows: number[] = [];
    const read: ReadActivityWindow<ActivityPosition> = (window) => {
      windows.push(window.sinceUs);
      return createRead(rows, 3)(window);
    };
    const page = await searchBackwards({ ...createSource(rows, 3), read }, { ...BOUNDS, max: 10 });
    expect([page.activities, page.next, windows]).toEqual([rows, null, [FROM.updatedUs - 31 * DAY_US, 0]]);
  });

  it('comes to the end in thirty questions where a question over thirty years is refused, whatever is there', async () => {
    const rows = [1, 400 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
    let asked = 0;
    const read: ReadActivityWindow<ActivityPosition> = async (window) => {
      asked++;
      if (window.untilUs - window.sinceUs > 30 * 365 * DAY_US) throw refusal();
      return createRead(rows, 10)(window);
    };
    const page = await searchBackwards({ ...createSource(rows, 10), read }, { ...BOUNDS, max: 10 });
    expect([page.activities, page.next, asked <= 30]).toEqual([rows, null, true]);
  });

  it('asks twenty questions at most for it where the question where to begin is refused', async () => {
    const { asked, read } = createMillion();
    const source = { read, findStart: () => Promise.reject(refusal()), refusalsBeforeFindStart: 1 };
    const page = await searchBackwards(source, { ...BOUNDS, max: 100 });
    expect([page.activities.length, asked.windows <= 20]).toEqual([100, true]);
  });

  it('gives up at what is no refusal', async () => {
    const [away, refused] = [() => Promise.reject(new Error('the store is away')), () => Promise.reject(refusal())];
    for (const source of [
      { read: away, findStart: away },
      { read: refused, findStart: away },
    ])
      await expect(searchBackwards({ ...source, refusalsBeforeFindStart: 1 }, { ...BOUNDS, max: 1 })).rejects.toThrow(
        'is away',
      );
  });
});
