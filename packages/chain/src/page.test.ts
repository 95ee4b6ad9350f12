import { describe, expect, it } from 'vitest';
import { NO_FILTERS } from './filters.ts';
import { createReadPage, type VersionSource } from './page.ts';
import { START_GAP } from './position.ts';
import type { ActivityRow } from './rows.ts';
import type { PageQuestion } from './store.ts';
import { activityRow } from './test/rows.ts';

const idOf = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
const question: PageQuestion = {
  ...{ chain: 'main', filters: NO_FILTERS, gap: START_GAP, direction: 'next', limit: 2, horizon: 1_000_000 },
};

/** A feed of one version a microsecond, in which the first so many have later versions. */
function createSource(versions: number, outdated: number, workMaxMs?: number) {
  const asked: number[] = [];
  const source: VersionSource<ActivityRow> = {
    async positions({ gap, direction, limit }) {
      asked.push(limit);
      const first = gap.side === 'after' ? gap.updatedAt + 1 : gap.updatedAt;
      const [from, step] = direction === 'next' ? [Math.max(1, first), 1] : [first - 1, -1];
      const found = Array.from({ length: limit }, (_, index) => from + index * step);
      return found.flatMap((us) => (us >= 1 && us <= versions ? [{ updatedAt: us, id: idOf(us), indexedAt: us }] : []));
    },
    rows: async (_question, found) =>
      found.map(({ updatedAt, id }) => ({ row: activityRow({ updatedAt, id }), isOutdated: updatedAt <= outdated })),
  };
  return { asked, readPage: createReadPage(source, workMaxMs) };
}

describe('a page of a feed in which nearly everything was updated', () => {
  it('is found behind thousands of outdated versions in a few questions, each larger than the one before', async () => {
    const { asked, readPage } = createSource(6_000, 5_000);
    const page = await readPage(question);
    expect(page.rows.map(({ updatedAt }) => updatedAt)).toEqual([5_001, 5_002]);
    expect(page.next).toMatchObject({ side: 'after', updatedAt: 5_002 });
    expect(asked).toEqual([3, 12, 48, 192, 768, 2_000, 2_000]);
  });

  it('ends without rows after so many, and its cursor goes on behind them: nobody looks at them again', async () => {
    const { readPage } = createSource(100_000, 60_000);
    const pages = [await readPage(question)];
    while (pages.at(-1)!.rows.length === 0) pages.push(await readPage({ ...question, gap: pages.at(-1)!.next }));
    expect(pages[0]).toMatchObject({ rows: [], previous: START_GAP, next: { side: 'after', updatedAt: 21_023 } });
    expect(pages.at(-1)!.rows.map(({ updatedAt }) => updatedAt)).toEqual([60_001, 60_002]);
    expect(pages.length).toBeLessThan(5);
  });

  it('ends short when it has taken its time, and goes on behind what was looked at: a reader always gets further', async () => {
    const { asked, readPage } = createSource(1_000, 100, 0);
    const page = await readPage(question);
    expect(page).toMatchObject({ rows: [], next: { side: 'after', updatedAt: 3 } });
    expect((await readPage({ ...question, gap: page.next })).next).toMatchObject({ side: 'after', updatedAt: 6 });
    expect(asked).toEqual([3, 3]);
  });

  it('does so backwards too', async () => {
    const { readPage } = createSource(30_000, 30_000);
    const gap = { ...START_GAP, side: 'before', updatedAt: 30_001 } as const;
    const page = await readPage({ ...question, gap, direction: 'previous' });
    expect(page).toMatchObject({ rows: [], next: gap, previous: { side: 'before', updatedAt: 30_001 - 21_023 } });
  });
});

describe('a page of a feed in which some were updated', () => {
  it('is found in one turn', async () => {
    const { asked, readPage } = createSource(1_000, 20);
    expect((await readPage({ ...question, limit: 160 })).rows).toHaveLength(160);
    expect(asked).toEqual([180]);
  });

  it('takes another turn of the same size where more of them were', async () => {
    const { asked, readPage } = createSource(1_000, 21);
    expect((await readPage({ ...question, limit: 160 })).rows).toHaveLength(160);
    expect(asked).toEqual([180, 180]);
  });
});

describe('a version that is in the order and not in the table', () => {
  it('is a fault, and never left out in silence', async () => {
    const position = { updatedAt: 5, id: idOf(5), indexedAt: 5 };
    const readPage = createReadPage({
      positions: async () => [position],
      rows: async () => [],
    });
    await expect(readPage(question)).rejects.toThrow('the version at 5 is in the order and not in the table');
  });
});
