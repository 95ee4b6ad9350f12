import { randomUUID } from 'node:crypto';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openActivityStore, openChainStore } from './clickhouse/index.ts';
import { comparePositions, START_GAP } from './cursor.ts';
import type { ActivityRow } from './rows.ts';
import type { PageQuery, ShownActivity } from './store.ts';
import { NO_FILTERS } from './store.ts';
import { putActivities } from './test/memory/index.ts';
import {
  type ClickHouseTestChain,
  openClickHouseTestChain,
  openMemoryTestChain,
  type TestChain,
} from './test/open-chains.ts';
import { activityRow, addressOf, arbitraryActivity, arbitraryToken, NOON_US } from './test/rows.ts';
import { toShownActivity } from './wire.ts';

const { signal } = new AbortController();
const byId = (rows: readonly ActivityRow[]) => rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
const newChain = () => `test-${randomUUID()}`;
const query = (chain: string, overrides: Partial<PageQuery> = {}): PageQuery => ({
  chain,
  filters: NO_FILTERS,
  gap: START_GAP,
  direction: 'next',
  limit: 200,
  horizon: NOON_US + 1_000_000,
  ...overrides,
});

async function readAll({ reader }: TestChain, from: PageQuery): Promise<{ found: number[]; pages: number }> {
  const found: number[] = [];
  let { gap } = from;
  for (let pages = 1; ; pages++) {
    const page = await reader.readPage({ ...from, gap });
    found.push(...page.rows.map(({ updatedAt }) => updatedAt));
    const next = from.direction === 'next' ? page.next : page.previous;
    if (JSON.stringify(next) === JSON.stringify(gap)) return { found, pages };
    gap = next;
  }
}

let clickhouse: ClickHouseTestChain;
beforeAll(async () => {
  clickhouse = await openClickHouseTestChain();
});
afterAll(() => clickhouse.close());

describe.each([
  ['memory', openMemoryTestChain],
  ['ClickHouse', async () => ({ ...clickhouse, close: async () => {} })],
])('a chain store in %s', (_where, open) => {
  let chains: TestChain;
  beforeAll(async () => {
    chains = await open();
  });
  afterAll(() => chains.close());

  it('the store returns every member of an activity unchanged', async () => {
    const generated = fc.uniqueArray(arbitraryActivity, { minLength: 1, maxLength: 20, selector: ({ id }) => id });
    await fc.assert(
      fc.asyncProperty(generated, async (members) => {
        const chain = newChain();
        const rows = members.map((each, index) => ({ ...each, chain, updatedAt: NOON_US + index }));
        await putActivities(chains.activities, rows);
        expect((await chains.reader.readPage(query(chain))).rows).toEqual(rows.map(toShownActivity));
        expect(byId(await chains.reader.readActivities(rows.map(({ id }) => id)))).toEqual(byId(rows));
      }),
      { numRuns: runsOf({ quick: 7, all: 20 }) },
    );
  });

  it('readActivities returns the last version for an id, from each chain that uses the id', async () => {
    const version = fc.record({ id: fc.nat(3), chain: fc.nat(1), details: fc.constantFrom('{"a":1}', '{"b":2}') });
    await fc.assert(
      fc.asyncProperty(
        fc.array(version, { minLength: 1, maxLength: 12 }),
        fc.subarray([0, 1, 2, 3]),
        async (versions, requested) => {
          const [ids, names] = [Array.from({ length: 4 }, () => randomUUID()), [newChain(), newChain()]];
          const rows = versions.map(({ id, chain, details }, index) =>
            activityRow({ id: ids[id]!, chain: names[chain]!, details, updatedAt: NOON_US + index }),
          );
          await putActivities(chains.activities, rows);
          await putActivities(chains.activities, rows.slice(0, 1));
          const last = new Map(rows.map((row) => [`${row.chain} ${row.id}`, row]));
          const expected = [...last.values()].filter(({ id }) => requested.some((index) => ids[index] === id));
          const found = await chains.reader.readActivities(requested.map((index) => ids[index]!));
          const inOrder = (list: readonly ActivityRow[]) => list.toSorted(comparePositions);
          expect(inOrder(found)).toEqual(inOrder(expected));
        },
      ),
      { numRuns: runsOf({ quick: 7, all: 20 }) },
    );
  });

  it('readToken and findToken return the last version of a token, or null for an unknown token', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryToken, arbitraryToken, async (first, second) => {
        const chain = newChain();
        const contractAddress = `0x${randomUUID().replaceAll('-', '')}deadbeef`;
        const older = { ...first, chain, contractAddress, updatedAt: NOON_US };
        const newer = { ...second, chain, contractAddress, updatedAt: NOON_US + 1 };
        for (const rows of [[newer], [older]])
          await chains.activities.insert({ table: 'tokens', rows, token: randomUUID(), signal });
        expect(await chains.reader.readToken(chain, contractAddress)).toEqual(newer);
        expect(await chains.reader.findToken([newChain(), chain])).toEqual(newer);
        expect(await chains.reader.findToken([newChain()])).toBeNull();
        expect(await chains.reader.readToken(newChain(), contractAddress)).toBeNull();
        expect(await chains.reader.readToken(chain, addressOf(9))).toBeNull();
      }),
      { numRuns: runsOf({ quick: 4, all: 10 }) },
    );
  });

  it('rows with the same deduplication token are stored once', async () => {
    const chain = newChain();
    const rows = [activityRow({ chain }), activityRow({ chain, updatedAt: NOON_US + 1 })];
    const insert = (insertedRows: typeof rows) =>
      chains.activities.insert({ table: 'activity_feeds', rows: insertedRows, token: `${chain}|once`, signal });
    for (let time = 0; time < 3; time++) await insert(rows);
    expect((await chains.reader.readPage(query(chain))).rows).toEqual(rows.map(toShownActivity));
    // Rows with a new token are stored, which shows that inserts still work.
    await insert([activityRow({ chain, updatedAt: NOON_US + 2 })]);
    expect((await chains.reader.readPage(query(chain))).rows).toHaveLength(2);
  });

  it('storedOffsets ignores rows from another log', async () => {
    const chain = newChain();
    const rows = [0, 1, 2, 3].map((index) => activityRow({ chain, updatedAt: NOON_US + index, offset: 10 + index }));
    await chains.activities.insert({ table: 'activities', rows: rows.slice(0, 2), token: randomUUID(), signal });
    const lost = [
      { ...rows[2]!, updatedAt: NOON_US + 9 },
      { ...rows[3]!, id: randomUUID() },
    ];
    await chains.activities.insert({ table: 'activities', rows: lost, token: randomUUID(), signal });
    expect(await chains.activities.storedOffsets(rows)).toEqual(new Set([10, 11]));
    const movedRows = rows.map((row) => ({ ...row, partition: 3 }));
    expect(await chains.activities.storedOffsets(movedRows)).toEqual(new Set());
    expect(await chains.activities.storedOffsets([])).toEqual(new Set());
  });

  it('constantsOf returns the members from the chain that used the id first', async () => {
    const first = activityRow({ chain: newChain(), type: 'burn', indexedAt: 5 });
    const second = { ...first, chain: newChain(), type: 'mint', indexedAt: 6, updatedAt: NOON_US + 1 } as const;
    for (const row of [second, first]) await putActivities(chains.activities, [row]);
    expect((await chains.activities.constantsOf([first.id])).get(first.id)).toEqual({
      chain: first.chain,
      type: 'burn',
      contractAddress: first.contractAddress,
      indexedAt: 5,
    });
    expect((await chains.reader.readPage(query(first.chain))).rows).toEqual([toShownActivity(first)]);
    expect((await chains.reader.readPage(query(second.chain))).rows).toEqual([toShownActivity(second)]);
  });

  it('a page sorts versions with the same microsecond by position', async () => {
    const chain = newChain();
    const rows = Array.from({ length: 50 }, () => activityRow({ chain }));
    await putActivities(chains.activities, rows);
    const inOrder = rows.toSorted(comparePositions);
    const { rows: read } = await chains.reader.readPage(query(chain));
    expect(read.map(({ id }) => id)).toEqual(inOrder.map(({ id }) => id));
    const half = { ...query(chain), gap: { ...inOrder[24]!, side: 'after' as const } };
    expect((await chains.reader.readPage(half)).rows).toEqual(inOrder.slice(25).map(toShownActivity));
  });

  it('a page omits a version only if a later version is below the horizon', async () => {
    const chain = newChain();
    const first = activityRow({ chain });
    const [second, third] = [1, 2].map((later) => ({
      ...first,
      updatedAt: NOON_US + later,
      offset: first.offset + later,
    }));
    await putActivities(chains.activities, [first, second!, third!]);
    const readBelow = async (horizon: number) => (await chains.reader.readPage(query(chain, { horizon }))).rows;
    expect(await readBelow(NOON_US)).toEqual([]);
    expect(await readBelow(NOON_US + 1)).toEqual([toShownActivity(first)]);
    expect(await readBelow(NOON_US + 2)).toEqual([toShownActivity(second!)]);
    expect(await readBelow(NOON_US + 3)).toEqual([toShownActivity(third!)]);
  });

  it('a page contains a version once even if the version is stored several times', async () => {
    const chain = newChain();
    const rows: ActivityRow[] = [0, 1, 2].map((index) => activityRow({ chain, updatedAt: NOON_US + index }));
    for (let time = 0; time < 3; time++) await putActivities(chains.activities, rows);
    for (const limit of [1, 2, 200]) {
      const read: ShownActivity[] = [];
      let gap: PageQuery['gap'] = START_GAP;
      for (let length = 1; length > 0; ) {
        const page = await chains.reader.readPage(query(chain, { gap, limit }));
        length = page.rows.length;
        read.push(...page.rows);
        gap = page.next;
      }
      expect([limit, read]).toEqual([limit, rows.map(toShownActivity)]);
    }
  });
});

describe('the chain store in ClickHouse', () => {
  it('ClickHouse stores a block once even if the block spans two months', async () => {
    const chain = newChain();
    const rows = [0, 40].map((days) => activityRow({ chain, updatedAt: NOON_US - days * 86_400_000_000 }));
    for (let time = 0; time < 2; time++)
      await clickhouse.activities.insert({ table: 'activities', rows, token: `${chain}|months`, signal });
    const count = await clickhouse.query(`SELECT count() FROM activities WHERE chain = '${chain}' FORMAT TSV`);
    expect(count).toBe('2');
  });

  it('ClickHouse inserts a large block as a single block, so that the token covers all rows', async () => {
    const chain = newChain();
    const details = JSON.stringify({ text: 'x'.repeat(4_000) });
    const rows = Array.from({ length: 5_000 }, (_, index) =>
      activityRow({ chain, details, updatedAt: NOON_US + index }),
    );
    for (let time = 0; time < 2; time++)
      await clickhouse.activities.insert({ table: 'activities', rows, token: `${chain}|large`, signal });
    const parts = `SELECT count(), uniqExact(_part) FROM activities WHERE chain = '${chain}' FORMAT TSV`;
    expect(await clickhouse.query(parts)).toBe('5000\t1');
  });

  it('the store is not ready with wrong credentials, and a missing database is a final fault', async () => {
    const unauthorized = openChainStore({ ...clickhouse.target, password: 'wrong' });
    const absentStore = openActivityStore({ ...clickhouse.target, database: 'playline_test_absent' });
    try {
      expect([await clickhouse.reader.ready(), await clickhouse.activities.ready()]).toEqual([true, true]);
      expect(await unauthorized.ready()).toBe(false);
      const block = { table: 'activities', rows: [activityRow()], token: 't', signal } as const;
      await expect(absentStore.insert(block)).rejects.toMatchObject({ name: 'StoreFault', kind: 'permanent' });
      await expect(unauthorized.readToken('a', addressOf(1))).rejects.toMatchObject({ kind: 'transient' });
    } finally {
      await unauthorized.close();
      await absentStore.close();
    }
  });

  it('a page accepts filter bounds before 1970', async () => {
    const chain = newChain();
    const row = activityRow({ chain });
    await putActivities(clickhouse.activities, [row]);
    const countRows = async (filters: Partial<PageQuery['filters']>) =>
      (await clickhouse.reader.readPage(query(chain, { filters: { ...NO_FILTERS, ...filters } }))).rows.length;
    expect(await countRows({ fromIndexedAt: -1 })).toBe(1);
    expect(await countRows({ fromIndexedAt: -1, toIndexedAt: -1 })).toBe(0);
    expect(await countRows({ toIndexedAt: -1 })).toBe(0);
  });

  it.each([
    ['a range long before the rows', 0],
    // The reader then reads everything before the range as one window, because almost no rows should match there.
    ['a range long after the rows', NOON_US + 100 * 86_400_000_000],
  ])(
    'a reader reaches both ends even if pages end early because almost no rows match the range (%s)',
    async (_case, atUs) => {
      const chain = newChain();
      const [rows, stepUs] = [90_000, 250_000_000];
      const firstUs = NOON_US - rows * stepUs;
      // Old and new rows alternate, so the time index cannot skip any rows. One row in 10,000 is in the range.
      const columns = 'entry, feed, updated_at, id, indexed_at, superseded_at, members';
      const indexed = `multiIf(number % 10000 = 7000, 500, number % 2 = 0, 100, 900)`;
      await clickhouse.query(
        `INSERT INTO activity_feeds (${columns}) SELECT 'version', '${chain} * *', ` +
          `fromUnixTimestamp64Micro(${firstUs} + number * ${stepUs}, 'UTC'), generateUUIDv4(), ` +
          `fromUnixTimestamp64Micro(${atUs} + ${indexed}, 'UTC'), ` +
          `fromUnixTimestamp64Micro(9007199254740990, 'UTC'), '"n":1' FROM numbers(${rows})`,
      );
      const filters = { ...NO_FILTERS, fromIndexedAt: atUs + 400, toIndexedAt: atUs + 600 };
      const expected = Array.from({ length: rows / 10_000 }, (_, index) => index * 10_000 + 7_000);
      for (const direction of ['next', 'previous'] as const) {
        const gap = direction === 'next' ? START_GAP : ({ ...START_GAP, updatedAt: NOON_US } as const);
        const { found, pages } = await readAll(clickhouse, query(chain, { filters, gap, direction }));
        expect(found.map((us) => (us - firstUs) / stepUs).toSorted((a, b) => a - b)).toEqual(expected);
        expect(pages).toBeLessThan(30);
      }
    },
  );

  it('the store rejects ids that are not UUIDs, so that they cannot inject SQL', async () => {
    await expect(clickhouse.activities.constantsOf(["'"])).rejects.toThrow('an id is not a UUID');
    await expect(clickhouse.activities.lastBefore(1, 'a', ["' OR 1 = 1 --"])).rejects.toThrow('an id is not a UUID');
  });
});
