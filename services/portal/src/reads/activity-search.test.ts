import { randomUUID } from 'node:crypto';
import { PublicError } from '@playline/errors';
import { ClickHouseFault } from '@playline/runtime';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ActivityPlace,
  type ActivityWindow,
  byNewest,
  type ReadActivityWindow,
  searchBackwards,
} from './activity-search.ts';

const NOW_US = Date.parse('2026-11-20T10:00:00Z') * 1_000;
const DAY_US = 86_400_000_000;
const FROM: ActivityPlace = { updatedUs: NOW_US + 1, id: '' };
const TIME_MAX_MS = 60_000;

const refusal = () => new PublicError('VALIDATION_ERROR', { cause: new ClickHouseFault(500, '158', 'TOO_MANY_ROWS') });

/** Reads rows in memory as the view does. @param bound a window with more rows is refused */
function createRead(rows: readonly ActivityPlace[], bound: number): ReadActivityWindow<ActivityPlace> {
  return async ({ sinceUs, untilUs, before, rowsMax }) => {
    const isInside = (row: ActivityPlace) =>
      row.updatedUs < untilUs || (before !== '' && byNewest(row, { updatedUs: untilUs, id: before }) > 0);
    const found = rows.filter((row) => row.updatedUs >= sinceUs && row.updatedUs <= untilUs && isInside(row));
    if (found.length > bound) throw refusal();
    return found.toSorted(byNewest).slice(0, rowsMax);
  };
}

/** Reads page after page to the end. */
async function readAll(read: ReadActivityWindow<ActivityPlace>, { max = 3, timeMaxMs = TIME_MAX_MS } = {}) {
  const pages: (readonly ActivityPlace[])[] = [];
  for (let from: ActivityPlace | null = FROM; from !== null; ) {
    const page: { activities: readonly ActivityPlace[]; next: ActivityPlace | null } = await searchBackwards(read, {
      ...{ from, max, timeMaxMs },
    });
    pages.push(page.activities);
    from = page.next;
  }
  return pages;
}

describe('the search backwards', () => {
  it('gives each row once, the newest first, however rows are spread, and however few one question may read', async () => {
    const gap = fc.constantFrom(1, 1, 1, 2, 1_000, 1_000_000, 600_000_000, DAY_US, 400 * DAY_US);
    const property = fc.asyncProperty(
      fc.array(gap, { minLength: 1, maxLength: 30 }),
      ...([fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 5 })] as const),
      async (gaps, bound, max) => {
        let updatedUs = NOW_US + 1;
        const rows = gaps.map((each) => {
          updatedUs -= each;
          return { updatedUs, id: randomUUID() };
        });
        const pages = await readAll(createRead(rows, bound), { max });
        expect(pages.flat()).toEqual(rows);
        expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(max);
      },
    );
    await fc.assert(property, { numRuns: 200 });
  });

  it('gives each row of one microsecond once, where one question may read them', async () => {
    const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() })).toSorted(byNewest);
    const older = { updatedUs: NOW_US - 1, id: randomUUID() };
    expect((await readAll(createRead([...rows, older], 20))).flat()).toEqual([...rows, older]);
  });

  it('gets further with each page, also where its time is over at once', async () => {
    const rows = [1, 2, 3, DAY_US, 900 * DAY_US].map((age) => ({ updatedUs: NOW_US - age, id: randomUUID() }));
    expect((await readAll(createRead(rows, 2), { timeMaxMs: 0 })).flat()).toEqual(rows);
  });

  it('throws the refusal when a single microsecond is too much', async () => {
    const rows = Array.from({ length: 20 }, () => ({ updatedUs: NOW_US, id: randomUUID() }));
    await expect(readAll(createRead(rows, 19))).rejects.toThrow(PublicError);
  });

  it('asks twenty questions at most for a page of a million versions of one second', async () => {
    let asked = 0;
    const rowsIn = ({ sinceUs, untilUs }: ActivityWindow) =>
      Math.max(0, Math.min(untilUs, NOW_US) - Math.max(sinceUs, NOW_US - 1_000_000));
    const read: ReadActivityWindow<ActivityPlace> = async (window) => {
      asked++;
      if (rowsIn(window) > 200_000) throw refusal();
      const count = Math.min(window.rowsMax, rowsIn(window));
      return Array.from({ length: count }, (_, at) => ({ updatedUs: NOW_US - at, id: randomUUID() }));
    };
    const page = await searchBackwards(read, { from: FROM, max: 100, timeMaxMs: TIME_MAX_MS });
    expect([page.activities.length, asked <= 20]).toEqual([100, true]);
  });

  it('gives up at what is no refusal', async () => {
    const read = () => Promise.reject(new Error('the store is away'));
    await expect(searchBackwards(read, { from: FROM, max: 1, timeMaxMs: TIME_MAX_MS })).rejects.toThrow('is away');
  });
});
