// Contract, tables "Activity", "Page" and "details by type", and chain reads, on the history of activities.
import { ACTIVITY_TYPES, type ActivityType } from '@playline/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CHAIN } from '../../services/chain-api/src/test/open-chain-api.ts';
import { activityRow, addressOf, DETAILS, NOON, NOON_US } from '../../services/chain-api/src/test/rows.ts';
import { type ConformanceChainApi, expectChainFault, startChainApi } from './chain-api.ts';
import { START_MAX_MS } from './gateway.ts';

let api: ConformanceChainApi;
beforeAll(async () => {
  api = await startChainApi();
}, START_MAX_MS);
afterAll(() => api.close());

let contracts = 1000;
let after = 0;
/** Stores rows of a new contract, one microsecond apart. Returns them with the filter that finds them. */
async function put(...rows: Parameters<typeof activityRow>[0][]) {
  const contract = addressOf(contracts++);
  const made = rows.map((row) => activityRow({ contractAddress: contract, after: after++, ...row }));
  await api.put(...made);
  return { rows: made, ids: made.map(({ id }) => id), query: { contract_address: contract } };
}

const idsOf = ({ result }: Awaited<ReturnType<typeof api.history>>) => result.map(({ id }) => id);
const follow = (query: Record<string, string>, cursor: string) =>
  api.history({ ...query, page_size: '3', page_cursor: cursor });
const fault = async (query: string) =>
  expectChainFault(await api.get(`/activity-history?${query}`), 400, 'VALIDATION_ERROR');

/** The members that the contract requires of an asset. */
const ASSET = {
  contract_type: expect.stringMatching(/^ERC(721|1155)$/),
  contract_address: expect.stringMatching(/^0x[0-9a-f]{40}$/),
  token_id: expect.any(String),
  amount: expect.any(String),
};
const MEMBERS: Record<ActivityType, readonly string[]> = {
  mint: ['to', 'amount', 'asset'],
  burn: ['from', 'amount', 'asset'],
  transfer: ['from', 'to', 'amount', 'asset'],
  deposit: ['to', 'amount', 'asset'],
  withdrawal: ['from', 'amount', 'asset'],
  sale: ['order_id', 'to', 'from', 'asset', 'payment'],
};

it('an activity has every field of the contract, and no other', async () => {
  const { rows, query } = await put({});
  const updated = `2026-11-22T12:00:00.${String(rows[0]!.updatedAt - NOON_US).padStart(6, '0')}Z`;
  expect((await api.history(query)).result).toEqual([
    {
      id: rows[0]!.id,
      chain: CHAIN,
      type: 'mint',
      details: DETAILS.mint,
      updated_at: updated,
      indexed_at: updated,
      blockchain_metadata: {
        transaction_hash: `0x${'cd'.repeat(32)}`,
        block_number: '18446744073709551615',
        transaction_index: '0',
        log_index: '3',
      },
    },
  ]);
});

it('blockchain_metadata of an activity is null, or has all four strings, of which log_index may be null', async () => {
  const metadata = { transactionHash: `0x${'cd'.repeat(32)}`, blockNumber: '7', transactionIndex: '1' };
  const { query } = await put({ blockchainMetadata: null }, { blockchainMetadata: { ...metadata, logIndex: null } });
  expect((await api.history(query)).result.map((one) => one.blockchain_metadata)).toEqual([
    null,
    { transaction_hash: metadata.transactionHash, block_number: '7', transaction_index: '1', log_index: null },
  ]);
});

it.each(ACTIVITY_TYPES)('the details of a %s have all members of its type', async (type) => {
  const { query } = await put({ type });
  const [one] = (await api.history(query)).result;
  expect(one).toMatchObject({ type, details: DETAILS[type] });
  expect(Object.keys(one?.details ?? {})).toEqual(MEMBERS[type]);
});

it('an asset of an activity is an NFT with its token or a token with its contract alone; of a sale a list of NFTs', async () => {
  const { query } = await put({ type: 'mint' }, { type: 'deposit' }, { type: 'sale' });
  const [mint, deposit, sale] = (await api.history(query)).result.map(
    ({ details }) => (details as { asset: unknown }).asset,
  );
  expect(mint).toEqual(ASSET);
  expect(deposit).toEqual({ contract_type: 'ERC20', contract_address: addressOf(2) });
  expect(sale).toEqual([ASSET]);
});

it.each([
  ['from_updated_at', 'to_updated_at'],
  ['from_indexed_at', 'to_indexed_at'],
])('the parameters %s and %s bound indexed_at, both inclusive', async (from, to) => {
  const times = [-1, 0, 1, 2].map((micros) => ({ indexedAt: NOON_US + micros }));
  const { ids, query } = await put(...times);
  const bounds = { [from]: NOON, [to]: '2026-11-22T12:00:00.000001Z' };
  expect(idsOf(await api.history({ ...query, ...bounds }))).toEqual(ids.slice(1, 3));
  expect(idsOf(await api.history({ ...query, [from]: NOON }))).toEqual(ids.slice(1));
  expect(idsOf(await api.history({ ...query, [to]: NOON }))).toEqual(ids.slice(0, 2));
});

it.each(['from', 'to'])(
  'the %s bound under both names, even with equal values: 400 VALIDATION_ERROR',
  async (bound) => {
    await fault(`${bound}_updated_at=${NOON}&${bound}_indexed_at=${NOON}`);
  },
);

it('the parameter contract_address is compared case-insensitively, and combines with all others', async () => {
  const { ids, query } = await put({ type: 'mint' }, { type: 'burn' });
  const spelled = { contract_address: `0x${query.contract_address.slice(2).toUpperCase()}` };
  expect(idsOf(await api.history(spelled))).toEqual(ids);
  expect(idsOf(await api.history({ ...spelled, activity_type: 'burn' }))).toEqual(ids.slice(1));
});

it.each(ACTIVITY_TYPES)('the parameter activity_type %s finds activities of that type alone', async (type) => {
  const { ids, query } = await put(...ACTIVITY_TYPES.map((each) => ({ type: each })));
  expect(idsOf(await api.history({ ...query, activity_type: type }))).toEqual([ids[ACTIVITY_TYPES.indexOf(type)]]);
});

it.each([
  'from_updated_at=yesterday',
  'to_indexed_at=2026-02-30T00:00:00Z',
  'contract_address=0x12',
  'activity_type=gift',
  'page_cursor=nonsense',
  'page_size=ten',
])('the parameter %s: 400 VALIDATION_ERROR', async (query) => fault(query));

it.each(['0', '201', '-1', '1.5', '', 'all'])('the parameter page_size %j: 400 VALIDATION_ERROR', async (size) => {
  await fault(`page_size=${size}`);
});

it('the parameter page_size is 1 to 200, and 100 when it is not given', async () => {
  const { ids, query } = await put(...Array.from({ length: 201 }, () => ({})));
  expect(idsOf(await api.history(query))).toEqual(ids.slice(0, 100));
  expect(idsOf(await api.history({ ...query, page_size: '1' }))).toEqual(ids.slice(0, 1));
  expect(idsOf(await api.history({ ...query, page_size: '200' }))).toEqual(ids.slice(0, 200));
});

it('the history of an unknown chain: 404 RESOURCE_NOT_FOUND', async () => {
  const answer = await fetch(`${api.url}/v1/chains/unknown-chain/activity-history`);
  await expectChainFault(answer, 404, 'RESOURCE_NOT_FOUND');
});

it('the pages are ordered by updated_at ascending, whatever the order of storing, id and indexed_at', async () => {
  const base = after;
  after += 10;
  const { rows, query } = await put(
    { after: base + 2, indexedAt: NOON_US },
    { after: base, indexedAt: NOON_US + 5 },
    { after: base + 1, indexedAt: NOON_US + 3 },
  );
  expect(idsOf(await api.history(query))).toEqual([rows[1]!.id, rows[2]!.id, rows[0]!.id]);
});

it('the pages lead forwards and backwards over everything once', async () => {
  const { ids, query } = await put(...Array.from({ length: 7 }, () => ({})));
  const forwards: string[] = [];
  let page = await api.history({ ...query, page_size: '3' });
  for (; page.result.length > 0; page = await follow(query, page.page.next_cursor)) forwards.push(...idsOf(page));
  expect(forwards).toEqual(ids);
  const backwards: string[] = [];
  page = await follow(query, page.page.previous_cursor);
  for (; page.result.length > 0; page = await follow(query, page.page.previous_cursor))
    backwards.unshift(...idsOf(page));
  expect(backwards).toEqual(ids);
});

it('the pages have both cursors as strings, also an empty, a short and the first one', async () => {
  const { query } = await put({});
  const strings = { previous_cursor: expect.any(String), next_cursor: expect.any(String) };
  const first = await api.history(query);
  const last = await follow(query, first.page.next_cursor);
  const before = await follow(query, first.page.previous_cursor);
  expect([first.result.length, last.result.length, before.result.length]).toEqual([1, 0, 0]);
  for (const { page } of [first, last, before]) expect(page).toEqual(strings);
});

it('the pages let a poller resume: later activities are on the page of its last next_cursor', async () => {
  const { query } = await put({});
  const { page } = await api.history(query);
  const late = activityRow({ contractAddress: query.contract_address, after: after++ });
  await api.put(late);
  expect(idsOf(await follow(query, page.next_cursor))).toEqual([late.id]);
});

it('a page of a cursor that is foreign, edited, of other filters or another chain: 400 VALIDATION_ERROR', async () => {
  const { query } = await put({});
  const { next_cursor: cursor } = (await api.history(query)).page;
  const edited = `${cursor.slice(0, 20)}${cursor[20] === 'A' ? 'B' : 'A'}${cursor.slice(21)}`;
  const own = `contract_address=${query.contract_address}`;
  await fault(`${own}&page_cursor=${edited}`);
  await fault(`${own}&page_cursor=eyJpZCI6MX0`);
  await fault(`page_cursor=${cursor}`);
  await fault(`${own}&activity_type=mint&page_cursor=${cursor}`);
  const other = await fetch(`${api.url}/v1/chains/other-chain/activity-history?${own}&page_cursor=${cursor}`);
  await expectChainFault(other, 400, 'VALIDATION_ERROR');
  expect((await api.get(`/activity-history?${own}&page_size=5&page_cursor=${cursor}`)).status).toBe(200);
});
