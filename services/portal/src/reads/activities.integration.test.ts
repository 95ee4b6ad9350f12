import { randomUUID } from 'node:crypto';
import { runsOf } from '@playline/testkit/runs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Contract, contractOf, entriesOf, timeOf, type Version } from '../test/activity-rows.ts';
import { type OwnReads, openOwnReads } from '../test/own-reads.ts';
import { byNewest } from './activities.ts';
import {
  type ActivityPage,
  type ActivityPosition,
  type ActivitySearch,
  createPortalReads,
  type PortalReads,
  readManyActivities,
} from './index.ts';

const NOW_MS = Date.parse('2026-11-20T10:00:00Z');
const DAY_US = 86_400_000_000;
const END_MS = Date.UTC(2256, 0);

let own: OwnReads;
let reads: PortalReads;
beforeAll(async () => {
  own = await openOwnReads();
  ({ reads } = own);
});
afterAll(() => own?.close());

const put = (contract: Contract, versions: readonly Version[]) =>
  own.insert(
    'activity_feeds',
    versions.flatMap((version) => entriesOf(contract, version)),
  );

const searchOf = (contracts: readonly Contract[], over: Partial<ActivitySearch> = {}): ActivitySearch => ({
  nowMs: NOW_MS,
  contracts,
  type: '',
  tokenId: '',
  sinceMs: 0,
  untilMs: END_MS,
  ...over,
});
const idsOf = async (search: ActivitySearch) => (await reads.activities(search)).activities.map(({ id }) => id);

describe('the search of activities', () => {
  it('the pages return the last version of each activity once, newest first', async () => {
    const ages = fc.constantFrom(0, 1, 1, 60_000_000, DAY_US, 8 * DAY_US, 40 * DAY_US, 800 * DAY_US);
    const list = fc.array(
      fc.record({
        ageUs: ages,
        isOfSecond: fc.boolean(),
        isUpdated: fc.boolean(),
        isTwice: fc.boolean(),
        part: fc.nat(2),
      }),
      { minLength: 1, maxLength: 14 },
    );
    await fc.assert(
      fc.asyncProperty(list, fc.integer({ min: 1, max: 6 }), async (wanted, activitiesMax) => {
        const contracts = [contractOf(), contractOf()] as const;
        const last: Version[] = [];
        const parts: object[][] = [[], [], [], []];
        for (const { ageUs, isOfSecond, isUpdated, isTwice, part } of wanted) {
          const [id, us] = [randomUUID(), NOW_MS * 1000 - ageUs];
          const contract = contracts[isOfSecond ? 1 : 0];
          const first = { id, us: us - 5_000_000, supersededUs: us, tokenId: 'old' };
          const versions = isUpdated ? [first, { id, us, tokenId: 'new' }] : [{ id, us, tokenId: 'new' }];
          const entries = versions.flatMap((version) => entriesOf(contract, version));
          parts[part]!.push(...entries);
          // A different block, so that ClickHouse does not deduplicate it.
          if (isTwice) parts[3]!.push(...entries.map((entry) => ({ ...entry, kafka_partition: 1 })));
          last.push(versions.at(-1)!);
        }
        for (const rows of parts.filter(({ length }) => length > 0)) await own.insert('activity_feeds', rows);
        const seen: { readonly id: string; readonly us: number; readonly tokenId: string }[] = [];
        for (let before: ActivityPosition | null | undefined; before !== null; ) {
          const page: ActivityPage = await reads.activities(
            searchOf(contracts, { activitiesMax, ...(before && { before }) }),
          );
          expect(page.activities.length).toBeLessThanOrEqual(activitiesMax);
          for (const { id, updatedUs: us, assets } of page.activities)
            seen.push({ id, us, tokenId: assets[0]!.tokenId });
          before = page.next;
        }
        const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
        expect(seen.toSorted(byId)).toEqual(last.map(({ id, us }) => ({ id, us, tokenId: 'new' })).toSorted(byId));
        expect(seen.map(({ us }) => us)).toEqual(seen.map(({ us }) => us).toSorted((a, b) => b - a));
      }),
      { numRuns: runsOf({ quick: 2, all: 6 }) },
    );
  }, 120_000);

  it('each filter matches its activities, of the named contracts only', async () => {
    const [contract, another] = [contractOf(), contractOf()];
    const us = NOW_MS * 1000;
    const mint = { id: randomUUID(), us };
    const burn = { id: randomUUID(), us: us - 1, type: 'burn', tokenId: '77', indexedUs: us - DAY_US };
    await put(contract, [mint, burn]);
    await put(another, [{ id: randomUUID(), us }]);
    await put({ ...contract, chain: 'main-2' }, [{ id: randomUUID(), us }]);
    const found = (over: Partial<ActivitySearch>) => idsOf(searchOf([contract], over));
    expect(await found({})).toEqual([mint.id, burn.id]);
    for (const over of [{ type: 'mint' }, { tokenId: '7' }, { sinceMs: NOW_MS }, { sinceMs: NOW_MS - 1 }])
      expect([over, await found(over)]).toEqual([over, [mint.id]]);
    for (const over of [
      { type: 'burn' },
      { tokenId: '77' },
      { untilMs: NOW_MS },
      { before: { updatedUs: us, id: '' } },
    ])
      expect([over, await found(over)]).toEqual([over, [burn.id]]);
    for (const over of [{ type: '*' }, { type: "mint' OR '1' = '1" }, { tokenId: '%' }, { tokenId: '' }, { type: '' }])
      expect([over, (await found(over)).length]).toEqual([
        over,
        Object.values(over)[0] === '' || over.type === '*' ? 2 : 0,
      ]);
  });

  it('a contract name that is a wildcard or a list matches nothing', async () => {
    const contract = contractOf();
    await put(contract, [{ id: randomUUID(), us: NOW_MS * 1000 }]);
    const { contractAddress: address } = contract;
    for (const contractAddress of ['*', '', '%', '0x%', `${address} *`, `${address}\n`, '* *'])
      expect([contractAddress, await idsOf(searchOf([{ chain: 'main', contractAddress }]))]).toEqual([
        contractAddress,
        [],
      ]);
    expect(await idsOf(searchOf([]))).toEqual([]);
  });

  it('the search returns the members of an activity and the payment of a sale', async () => {
    const contract = contractOf();
    const members = {
      type: 'sale',
      details: {
        order_id: 'o',
        from: '0xa',
        to: '0xb',
        asset: ['1', '2'].map((tokenId) => ({
          contract_address: contract.contractAddress,
          token_id: tokenId,
          amount: '1',
        })),
        payment: { token: { contract_type: 'NATIVE', symbol: '<b>"ETH"</b>' }, price_including_fees: '105', fees: [] },
      },
      blockchain_metadata: { transaction_hash: '0xhash', block_number: '9', transaction_index: '0', log_index: null },
    };
    const feed = `main ${contract.contractAddress} *`;
    const [id, at] = [randomUUID(), timeOf(NOW_MS * 1000)];
    const entry = { entry: 'version', feed, id, updated_at: at, indexed_at: at, superseded_at: '2255-06-05 23:47:34' };
    await own.insert('activity_feeds', [{ ...entry, members: JSON.stringify(members).slice(1, -1) }]);
    expect((await reads.activities(searchOf([contract]))).activities).toEqual([
      {
        ...contract,
        id,
        type: 'sale',
        from: '0xa',
        to: '0xb',
        transactionHash: '0xhash',
        blockNumber: '9',
        updatedUs: NOW_MS * 1000,
        updatedMs: NOW_MS,
        indexedMs: NOW_MS,
        assets: ['1', '2'].map((tokenId) => ({ contractAddress: contract.contractAddress, tokenId, amount: '1' })),
        payment: { contractAddress: '', symbol: '<b>"ETH"</b>', amount: '105' },
      },
    ]);
    for (const tokenId of ['1', '2']) expect(await idsOf(searchOf([contract], { tokenId }))).toEqual([id]);
  });

  it('many activities with the same time are read once each, in several queries', async () => {
    const contract = contractOf();
    const feed = `main ${contract.contractAddress} *`;
    await own.send(`INSERT INTO activity_feeds (entry, feed, updated_at, id, indexed_at, superseded_at, members)
      SELECT 'version', '${feed}', '${timeOf(NOW_MS * 1000)}', generateUUIDv4(), '${timeOf(NOW_MS * 1000)}',
        '2255-06-05 23:47:34', '"type":"mint","details":{}'
      FROM numbers(5000)`);
    const ids: string[] = [];
    const sizes: number[] = [];
    for await (const page of readManyActivities(reads.activities, searchOf([contract]), 4_500)) {
      ids.push(...page.map(({ id }) => id));
      sizes.push(page.length);
    }
    expect([ids.length, new Set(ids).size, Math.max(...sizes)]).toEqual([4_500, 4_500, 1_000]);
  });
});

describe('a contract whose whole history was indexed within a minute', () => {
  const ROWS = 200_000;
  const STEP_US = 100;
  const contract = contractOf();
  /** Position of an activity by its number; 0 is the newest. */
  const positionOf = (number: number) => ({
    updatedUs: NOW_MS * 1000 - number * STEP_US,
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
  });
  const positionsIn = (activities: readonly ActivityPosition[]) =>
    activities.map(({ updatedUs, id }) => ({ updatedUs, id }));
  const positionsFrom = (first: number, count: number) =>
    Array.from({ length: count }, (_, at) => positionOf(first + at));

  /** The first page with an activity: on a busy machine a search may run out of time before it. */
  const firstOf = async (search: ActivitySearch): Promise<ActivityPage> => {
    const page = await reads.activities(search);
    if (page.activities.length > 0 || page.next === null) return page;
    return firstOf({ ...search, before: page.next });
  };

  beforeAll(() =>
    own.send(`INSERT INTO activity_feeds (entry, feed, updated_at, id, indexed_at, superseded_at, members)
      SELECT 'version', 'main ${contract.contractAddress} *', at, toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(number), 12, '0'))),
        at, '2255-06-05 23:47:34', concat('"type":"mint","details":{"asset":{"token_id":"', toString(number), '"}}')
      FROM (SELECT number, fromUnixTimestamp64Micro(${NOW_MS * 1000} - toInt64(number) * ${STEP_US}, 'UTC') AS at FROM numbers(${ROWS}))`),
  );

  it('the history exceeds the read limit of ClickHouse', async () => {
    const args = `contracts = ['main ${contract.contractAddress}'], type = '', token = '', since = 0, until = ${END_MS * 1000}, before = ''`;
    const sql = `SELECT count() FROM portal_activities(${args}, indexed_since = 0, indexed_until = ${END_MS})`;
    await expect(own.send(sql)).rejects.toThrow('TOO_MANY_ROWS');
  });

  /** Reads that record the view of each query. */
  function createCounted() {
    const views: (string | undefined)[] = [];
    const query: typeof own.query = (sql, options) => {
      views.push(/FROM \(?(?:SELECT \* FROM )?(\w+)/.exec(sql)?.[1]);
      return own.query(sql, options);
    };
    return { views, reads: createPortalReads(query) };
  }

  it('a page takes three queries: a refused one, one for its start, and the page', async () => {
    const counted = createCounted();
    const page = await counted.reads.activities(searchOf([contract]));
    expect(positionsIn(page.activities)).toEqual(positionsFrom(0, 100));
    expect(counted.views).toEqual(['portal_activities', 'portal_activity_times', 'portal_activities']);
  });

  it('pages are full, from the newest activity and from the middle', async () => {
    const newest = await firstOf(searchOf([contract]));
    expect(positionsIn(newest.activities)).toEqual(positionsFrom(0, 100));
    expect(newest.next).toEqual(positionOf(99));
    const middle = await firstOf(searchOf([contract], { before: positionOf(150_000), activitiesMax: 1_000 }));
    expect(positionsIn(middle.activities)).toEqual(positionsFrom(150_001, 1_000));
  });

  it('a search for one token reads the whole history in one query', async () => {
    const counted = createCounted();
    for (const tokenId of [String(ROWS - 1), String(ROWS)]) {
      const page = await counted.reads.activities(searchOf([contract], { tokenId }));
      expect(page.next).toBeNull();
      expect(positionsIn(page.activities)).toEqual(tokenId === String(ROWS) ? [] : [positionOf(ROWS - 1)]);
    }
    expect(counted.views).toEqual(['portal_activities', 'portal_activities']);
  });
});

it('activities of more contracts than one query names are in one order', async () => {
  const contracts = Array.from({ length: 70 }, contractOf);
  const us = NOW_MS * 1000;
  // Two activities of each time, of contracts that different queries read.
  const all = contracts.map((contract, at) => ({ contract, version: { id: randomUUID(), us: us - (at % 35) } }));
  await own.insert(
    'activity_feeds',
    all.flatMap(({ contract, version }) => entriesOf(contract, version)),
  );
  const expected = all.map(({ version }) => ({ updatedUs: version.us, id: version.id })).toSorted(byNewest);
  const seen: string[] = [];
  for await (const page of readManyActivities(
    (each) => reads.activities({ ...each, activitiesMax: 25 }),
    searchOf(contracts),
    1_000,
  ))
    seen.push(...page.map(({ id }) => id));
  expect(seen).toEqual(expected.map(({ id }) => id));
});
