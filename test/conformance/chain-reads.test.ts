// Contract, "Chain reads" and "Error envelope".
import {
  createRateLimitKey,
  createRateLimitKeyText,
  refreshRateLimitKey,
  revokeRateLimitKey,
} from '@playline/access-keys';
import { ACTIVITY_TYPES, type ActivityType } from '@playline/contracts';
import { openStoreProxy, type StoreProxy, testStores, until } from '@playline/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CHAIN } from '../../services/chain-api/src/test/open-chain-api.ts';
import { activityRow, addressOf, DETAILS, NOON, NOON_US, tokenRow } from '../../services/chain-api/src/test/rows.ts';
import { type ConformanceChainApi, expectChainError, startChainApi } from './chain-api.ts';
import { START_MAX_MS } from './gateway.ts';

/** Call limit per address, higher than the number of calls of all other tests in this file. */
const CALLS = 600;

let proxy: StoreProxy;
let api: ConformanceChainApi;
beforeAll(async () => {
  const clickhouse = new URL(testStores().clickhouse.url);
  proxy = await openStoreProxy(Number(clickhouse.port));
  clickhouse.port = String(proxy.port);
  api = await startChainApi({ CLICKHOUSE_URL: clickhouse.href, RATE_LIMIT_CALLS: String(CALLS), TRUSTED_PROXIES: '1' });
  await api.putTokens(tokenRow());
}, START_MAX_MS);
afterAll(async () => {
  await api.close();
  await proxy.close();
});

let nextToken = 1000;
/** Stores a new token and returns it as the API does. */
async function readNewToken(fields: Parameters<typeof tokenRow>[0]): Promise<Record<string, unknown>> {
  const { contractAddress, ...row } = tokenRow({ contractAddress: addressOf(nextToken++), ...fields });
  await api.putTokens({ ...row, contractAddress });
  const response = await api.get(`/tokens/${contractAddress}`);
  expect(response.status).toBe(200);
  return ((await response.json()) as { result: Record<string, unknown> }).result;
}

it('the response for a token has exactly the fields of the contract', async () => {
  const contractAddress = addressOf(1);
  expect(await readNewToken({ contractAddress })).toEqual({
    chain: CHAIN,
    contract_address: contractAddress,
    root_contract_address: addressOf(3),
    symbol: 'GOLD',
    decimals: 18,
    image_url: 'https://images.test/gold.png',
    name: 'Gold',
    verification_status: 'verified',
    updated_at: '2026-11-22T12:00:00.000000Z',
    is_canonical: true,
    root_chain_id: 'eip155:1',
    bridge_used: 'demo-bridge',
  });
});

it('optional fields of a token are null if they have no value', async () => {
  const none = { rootContractAddress: null, symbol: null, decimals: null, imageUrl: null, name: null };
  const nulls = { root_contract_address: null, symbol: null, decimals: null, image_url: null, name: null };
  const response = await readNewToken({ ...none, rootChainId: null, bridgeUsed: null });
  expect(response).toMatchObject({ ...nulls, root_chain_id: null, bridge_used: null });
});

it('a token’s contract_address is compared case-insensitively and returned in lower case', async () => {
  const contractAddress = '0xabcdefabcdef0123456789abcdef0123456789ab';
  await api.putTokens(tokenRow({ contractAddress }));
  for (const form of [contractAddress, `0x${contractAddress.slice(2).toUpperCase()}`]) {
    const response = await api.get(`/tokens/${form}`);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ result: { contract_address: contractAddress } });
  }
});

it('an unknown token returns 404 RESOURCE_NOT_FOUND', async () => {
  await expectChainError(await api.get(`/tokens/${addressOf(999)}`), 404, 'RESOURCE_NOT_FOUND');
});

let nextContract = 1000;
let nextMicros = 0;
/** Stores rows for a new contract, one microsecond apart. Returns the rows and a query that selects them. */
async function put(...rows: Parameters<typeof activityRow>[0][]) {
  const contract = addressOf(nextContract++);
  const created = rows.map((row) => activityRow({ contractAddress: contract, after: nextMicros++, ...row }));
  await api.put(...created);
  return { rows: created, ids: created.map(({ id }) => id), query: { contract_address: contract } };
}

const idsOf = ({ result }: Awaited<ReturnType<typeof api.history>>) => result.map(({ id }) => id);
const follow = (query: Record<string, string>, cursor: string) =>
  api.history({ ...query, page_size: '3', page_cursor: cursor });

const DETAIL_FIELDS: Record<ActivityType, readonly string[]> = {
  mint: ['to', 'amount', 'asset'],
  burn: ['from', 'amount', 'asset'],
  transfer: ['from', 'to', 'amount', 'asset'],
  deposit: ['to', 'amount', 'asset'],
  withdrawal: ['from', 'amount', 'asset'],
  sale: ['order_id', 'to', 'from', 'asset', 'payment'],
};

it('an activity has exactly the fields of the contract', async () => {
  const { rows, query } = await put({});
  const updated = `2026-11-22T12:00:00.${String(rows[0]!.updatedAt - NOON_US).padStart(6, '0')}Z`;
  // Until the service has read the first watermark, no activity is visible.
  await until('the activity is visible', async () => (await api.history(query)).result.length > 0);
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

it('an activity’s blockchain_metadata is null or has four strings, of which log_index may be null', async () => {
  const metadata = { transactionHash: `0x${'cd'.repeat(32)}`, blockNumber: '7', transactionIndex: '1' };
  const { query } = await put({ blockchainMetadata: null }, { blockchainMetadata: { ...metadata, logIndex: null } });
  expect((await api.history(query)).result.map((activity) => activity.blockchain_metadata)).toEqual([
    null,
    { transaction_hash: metadata.transactionHash, block_number: '7', transaction_index: '1', log_index: null },
  ]);
});

it.each(ACTIVITY_TYPES)('the details of a %s have all fields of that type', async (type) => {
  const { query } = await put({ type });
  const [activity] = (await api.history(query)).result;
  expect(activity).toMatchObject({ type, details: DETAILS[type] });
  expect(Object.keys(activity?.details ?? {})).toEqual(DETAIL_FIELDS[type]);
});

it.each([
  ['from_updated_at', 'to_updated_at'],
  ['from_indexed_at', 'to_indexed_at'],
])('the parameters %s and %s limit indexed_at to an inclusive range', async (from, to) => {
  const times = [-1, 0, 1, 2].map((micros) => ({ indexedAt: NOON_US + micros }));
  const { ids, query } = await put(...times);
  const bounds = { [from]: NOON, [to]: '2026-11-22T12:00:00.000001Z' };
  expect(idsOf(await api.history({ ...query, ...bounds }))).toEqual(ids.slice(1, 3));
  expect(idsOf(await api.history({ ...query, [from]: NOON }))).toEqual(ids.slice(1));
  expect(idsOf(await api.history({ ...query, [to]: NOON }))).toEqual(ids.slice(0, 2));
});

it('the parameter contract_address is case-insensitive and combines with other filters', async () => {
  const { ids, query } = await put({ type: 'mint' }, { type: 'burn' });
  const upperCase = { contract_address: `0x${query.contract_address.slice(2).toUpperCase()}` };
  expect(idsOf(await api.history(upperCase))).toEqual(ids);
  expect(idsOf(await api.history({ ...upperCase, activity_type: 'burn' }))).toEqual(ids.slice(1));
});

it('the parameter page_size accepts 1 to 200 and defaults to 100', async () => {
  const { ids, query } = await put(...Array.from({ length: 201 }, () => ({})));
  expect(idsOf(await api.history(query))).toEqual(ids.slice(0, 100));
  expect(idsOf(await api.history({ ...query, page_size: '1' }))).toEqual(ids.slice(0, 1));
  expect(idsOf(await api.history({ ...query, page_size: '200' }))).toEqual(ids.slice(0, 200));
});

it('every page has both cursors as strings, including empty, short and first pages', async () => {
  const { query } = await put({});
  const strings = { previous_cursor: expect.any(String), next_cursor: expect.any(String) };
  const first = await api.history(query);
  const last = await follow(query, first.page.next_cursor);
  const before = await follow(query, first.page.previous_cursor);
  expect([first.result.length, last.result.length, before.result.length]).toEqual([1, 0, 0]);
  for (const { page } of [first, last, before]) expect(page).toEqual(strings);
});

const TOKEN = `/tokens/${addressOf(2)}`;
const HISTORY = '/activity-history';

it.each([
  [400, 'VALIDATION_ERROR', '/tokens/x'],
  [400, 'VALIDATION_ERROR', `${HISTORY}?page_size=0`],
  [404, 'RESOURCE_NOT_FOUND', `/tokens/${addressOf(9)}`],
  [404, 'RESOURCE_NOT_FOUND', '/collections'],
])('the API returns %i %s in the error envelope for %s', async (status, code, path) => {
  await expectChainError(await api.get(path), status, code);
});

it.each([TOKEN, HISTORY])(
  'the API returns 500 INTERNAL_SERVER_ERROR without internal details for %s while ClickHouse is unavailable',
  async (path) => {
    proxy.mode = 'cut';
    const response = await api.get(path);
    const text = await response.clone().text();
    expect(text).not.toMatch(/clickhouse|127\.0\.0\.1:\d+\/?\?|ECONN/i);
    await expectChainError(response, 500, 'INTERNAL_SERVER_ERROR');
    proxy.mode = 'open';
    expect((await api.get(path)).status).toBe(200);
  },
);

it.each([TOKEN, HISTORY])('project keys are not required and are ignored: %s', async (path) => {
  const headers = { 'x-service-api-key': 'hello', 'x-service-publishable-key': 'hello', authorization: 'hello' };
  expect((await api.get(path)).status).toBe(200);
  expect((await api.get(path, headers)).status).toBe(200);
});

it('an unknown x-api-key returns 403 AUTHENTICATION_ERROR', async () => {
  for (const path of [TOKEN, HISTORY]) {
    const headers = { 'x-api-key': createRateLimitKeyText('svcapik') };
    await expectChainError(await api.get(path, headers), 403, 'AUTHENTICATION_ERROR');
  }
});

const plan = { partner: 'Acme', calls: 10_000, windowS: 60, expiresAt: null };
const statusOf = async (key: string) => (await api.get(TOKEN, { 'x-api-key': key })).status;

it('a rate limit key allows as many calls as its plan, from any address, and the next call returns 429', async () => {
  const { key } = await createRateLimitKey(api.rateLimitKeys, { ...plan, calls: 3 });
  const from = (address: string) =>
    api.get(TOKEN, { 'x-api-key': key, 'x-service-api-key': 'sent together', 'x-forwarded-for': address });
  for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) expect((await from(address)).status).toBe(200);
  const response = await from('192.0.2.4');
  expect(response.headers.get('ratelimit-policy')).toBe('"calls";q=3;w=60');
  await expectChainError(response, 429, 'TOO_MANY_REQUESTS_ERROR');
});

it('a replaced, revoked or expired rate limit key returns 403 AUTHENTICATION_ERROR', async () => {
  const { key, record } = await createRateLimitKey(api.rateLimitKeys, plan);
  expect(await statusOf(key)).toBe(200);
  const next = await refreshRateLimitKey(api.rateLimitKeys, record);
  await until('the old key is refused', async () => (await statusOf(key)) === 403);
  expect(await statusOf(next.key)).toBe(200);
  await revokeRateLimitKey(api.rateLimitKeys, record.keyId);
  await until('the revoked key is refused', async () => (await statusOf(next.key)) === 403);
  const expired = await createRateLimitKey(api.rateLimitKeys, { ...plan, expiresAt: Date.now() });
  await expectChainError(await api.get(TOKEN, { 'x-api-key': expired.key }), 403, 'AUTHENTICATION_ERROR');
});

// The chain API's settings test checks the default of 1,500 calls.
it('an address without a key that exceeds its limit gets 429 with Retry-After; other addresses do not', async () => {
  const from = (address: string, path = TOKEN) => api.get(path, { 'x-forwarded-for': address });
  expect((await from('192.0.2.77')).status).toBe(200);
  // Invalid calls also count, and need no store.
  const responses = await Promise.all(Array.from({ length: CALLS - 1 }, () => from('192.0.2.77', '/tokens/x')));
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([400]));
  for (const path of [TOKEN, HISTORY]) {
    const response = await from('192.0.2.77', path);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(240);
    expect(response.headers.get('ratelimit-policy')).toBe(`"calls";q=${CALLS};w=300`);
    await expectChainError(response, 429, 'TOO_MANY_REQUESTS_ERROR');
  }
  expect((await from('192.0.2.78')).status).toBe(200);
});
