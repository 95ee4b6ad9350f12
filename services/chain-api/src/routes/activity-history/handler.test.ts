import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityRow } from '@playline/chain';
import { createMemoryChain, putActivities } from '@playline/chain/memory';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  CHAIN,
  expectEnvelope,
  OTHER_CHAIN,
  OTHER_PARTITION,
  openChainApi,
  PARTITION,
  type TestChainApi,
} from '../../test/open-chain-api.ts';
import { activityRow, addressOf, DETAILS, NOON, NOON_US } from '../../test/rows.ts';

const idsOf = (page: { result: readonly { id: string }[] }) => page.result.map(({ id }) => id);
const rowsAt = (...times: number[]): ActivityRow[] => times.map((after) => activityRow({ after }));
const ids = (rows: readonly ActivityRow[]) => rows.map(({ id }) => id);

/** Reads pages until a page is empty. @returns all activity ids and the last cursor */
async function readAllPages(api: TestChainApi, query: Record<string, string>) {
  const readIds: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await api.history({ ...query, ...(cursor === undefined ? {} : { page_cursor: cursor }) });
    cursor = page.page.next_cursor;
    if (page.result.length === 0) return { readIds, cursor };
    readIds.push(...idsOf(page));
  }
}

it('GET activity-history returns complete activities ordered by updated_at', async () => {
  const api = await openChainApi();
  const [first, second] = [activityRow(), activityRow({ after: 1, blockchainMetadata: null })];
  await api.put(second, first);
  const { result } = await api.history();
  expect(result).toEqual([
    {
      id: first.id,
      chain: CHAIN,
      type: 'mint',
      details: DETAILS.mint,
      updated_at: NOON,
      indexed_at: NOON,
      blockchain_metadata: {
        transaction_hash: `0x${'cd'.repeat(32)}`,
        block_number: '18446744073709551615',
        transaction_index: '0',
        log_index: '3',
      },
    },
    expect.objectContaining({ id: second.id, updated_at: '2026-11-22T12:00:00.000001Z', blockchain_metadata: null }),
  ]);
});

it('GET activity-history returns every activity once, and the last cursor returns newer activities', async () => {
  const api = await openChainApi();
  const rows = rowsAt(0, 1, 2, 3, 4, 5, 6);
  await api.put(...rows);
  for (const page_size of ['1', '2', '3', '200']) {
    const { readIds, cursor } = await readAllPages(api, { page_size });
    expect(readIds).toEqual(ids(rows));
    expect((await api.history({ page_size, page_cursor: cursor })).page.next_cursor).toBe(cursor);
  }
  const { cursor } = await readAllPages(api, {});
  const [newer] = rowsAt(7) as [ActivityRow];
  await api.put(newer);
  expect(idsOf(await api.history({ page_cursor: cursor }))).toEqual([newer.id]);
});

it('GET activity-history returns everything published before the request, even with concurrent readers', async () => {
  // Stops the clock, so that all readers count as concurrent.
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  let watermark = NOON_US;
  const api = await openChainApi({
    watermarks: {
      read: async () => {
        const read = watermark;
        await delay(20);
        return read;
      },
    },
  });
  const [first, second] = rowsAt(0, 10) as [ActivityRow, ActivityRow];
  await api.put(first, second);
  const readConcurrently = async () => (await Promise.all(Array.from({ length: 8 }, () => api.history()))).map(idsOf);
  expect(await readConcurrently()).toEqual(Array(8).fill([first.id]));
  watermark = NOON_US + 10;
  expect(await readConcurrently()).toEqual(Array(8).fill([first.id, second.id]));
});

it('GET activity-history returns an empty page at the first watermark, and the cursor of that page returns all later activities', async () => {
  const api = await openChainApi();
  const { result, page } = await api.history();
  expect(result).toEqual([]);
  const rows = rowsAt(0, 1);
  await api.put(...rows);
  expect(idsOf(await api.history({ page_cursor: page.next_cursor }))).toEqual(ids(rows));
});

it('GET activity-history accepts a previous_cursor from another process, even without a watermark', async () => {
  const { reader, activities } = createMemoryChain();
  const rows = rowsAt(0, 1, 2, 3);
  await putActivities(activities, rows);
  const shared = { store: reader, cursorSecret: randomBytes(32) };
  const api = await openChainApi({ ...shared, watermarks: { read: async () => NOON_US + 2 } });
  const { page, result } = await api.history({ page_size: '3' });
  expect(result.map(({ id }) => id)).toEqual(ids(rows.slice(0, 3)));
  const page_cursor = (await api.history({ page_cursor: page.next_cursor })).page.previous_cursor;
  const withoutWatermark = await openChainApi({ ...shared, watermarks: { read: async () => null } });
  expect(idsOf(await withoutWatermark.history({ page_cursor }))).toEqual(ids(rows.slice(0, 3)));
});

it('GET activity-history combines the filters for contract, type and indexed_at', async () => {
  const api = await openChainApi();
  const expected = activityRow({ after: 5, type: 'sale', contractAddress: addressOf(7) });
  await api.put(
    expected,
    activityRow({ after: 6, type: 'sale' }),
    activityRow({ after: 7, contractAddress: addressOf(7) }),
    activityRow({ after: 8, type: 'sale', contractAddress: addressOf(7), indexedAt: NOON_US - 1 }),
    activityRow({ after: 9, type: 'sale', contractAddress: addressOf(7), indexedAt: NOON_US + 6 }),
  );
  const query = { activity_type: 'sale', contract_address: addressOf(7), from_updated_at: NOON };
  expect(idsOf(await api.history({ ...query, to_updated_at: '2026-11-22T12:00:00.000005Z' }))).toEqual([expected.id]);
});

it('GET activity-history returns only activities from the requested chain', async () => {
  const api = await openChainApi();
  const expected = activityRow();
  const other = activityRow({ chain: OTHER_CHAIN.name, partition: OTHER_PARTITION, after: 5 });
  expect(OTHER_PARTITION).not.toBe(PARTITION);
  await api.put(expected, other);
  expect(idsOf(await api.history())).toEqual([expected.id]);
  const response = await api.get(`/${OTHER_CHAIN.name}/activity-history`);
  expect(await response.json()).toMatchObject({ result: [{ id: other.id, chain: OTHER_CHAIN }] });
});

it('GET and HEAD activity-history return the rate limit and cache headers', async () => {
  const api = await openChainApi();
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(`${api.url}/v1/chains/${CHAIN.name}/activity-history`, { method });
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('private, no-cache');
    expect(response.headers.get('ratelimit-policy')).toBe('"calls";q=1500;w=300');
  }
});

const HISTORY = `/${CHAIN.name}/activity-history`;

const cursorOf = async (api: TestChainApi) => {
  await api.put(activityRow());
  return (await api.history({ activity_type: 'mint' })).page.next_cursor;
};

async function expectInvalid(response: Response, ...fields: string[]): Promise<void> {
  expect(response.status).toBe(400);
  const errors = fields.map((field) => ({ field, message: expect.stringContaining(field) }));
  await expectEnvelope(response, 'VALIDATION_ERROR', { errors });
}

it('GET activity-history returns 400 and lists every invalid parameter', async () => {
  const api = await openChainApi();
  await expectInvalid(await api.get(`${HISTORY}?page_size=201`), 'page_size');
  await expectInvalid(
    await api.get(`${HISTORY}?page_size=0&activity_type=gift&from_updated_at=today`),
    'from_updated_at',
    'activity_type',
    'page_size',
  );
});

it('GET activity-history returns 400 for a bound sent under both of its names', async () => {
  const api = await openChainApi();
  const time = '2026-11-22T12:00:00Z';
  for (const bound of ['from', 'to'])
    await expectInvalid(
      await api.get(`${HISTORY}?${bound}_updated_at=${time}&${bound}_indexed_at=${time}`),
      `${bound}_updated_at`,
    );
});

it('GET activity-history returns 400 for a cursor with a modified character', async () => {
  const api = await openChainApi();
  const cursor = await cursorOf(api);
  for (let index = 0; index < cursor.length; index++) {
    const edited = cursor.slice(0, index) + (cursor[index] === 'A' ? 'B' : 'A') + cursor.slice(index + 1);
    await expectInvalid(await api.get(`${HISTORY}?activity_type=mint&page_cursor=${edited}`), 'page_cursor');
  }
});

it('GET activity-history returns 400 for a cursor from different filters, another chain or another deployment', async () => {
  const api = await openChainApi();
  const cursor = await cursorOf(api);
  const otherCursor = await cursorOf(await openChainApi({ cursorSecret: randomBytes(32) }));
  for (const path of [
    `${HISTORY}?page_cursor=${cursor}`,
    `${HISTORY}?activity_type=sale&page_cursor=${cursor}`,
    `/${OTHER_CHAIN.name}/activity-history?activity_type=mint&page_cursor=${cursor}`,
    `${HISTORY}?activity_type=mint&page_cursor=${otherCursor}`,
  ])
    await expectInvalid(await api.get(path), 'page_cursor');
  expect((await api.get(`${HISTORY}?activity_type=mint&page_size=7&page_cursor=${cursor}`)).status).toBe(200);
});

it('GET activity-history returns 400 for a query that is not percent-encoded UTF-8', async () => {
  const response = await (await openChainApi()).get(`${HISTORY}?activity_type=%ff`);
  expect(response.status).toBe(400);
  await expectEnvelope(response, 'VALIDATION_ERROR');
});

it('GET activity-history rejects invalid parameters without reading the store', async () => {
  const readPage = () => Promise.reject(new Error('read'));
  const api = await openChainApi({ store: { readPage } });
  expect((await api.get(`${HISTORY}?page_size=0`)).status).toBe(400);
  expect((await api.get(HISTORY)).status).toBe(500);
});

it('a client address that reached its limit receives 429 from every operation', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 3 });
  const history = `/${CHAIN.name}/activity-history`;
  for (const path of [history, `/${CHAIN.name}/tokens/${addressOf(2)}`, `${history}?page_size=0`]) await api.get(path);
  const response = await api.get(history);
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toBe('300');
  await expectEnvelope(response, 'TOO_MANY_REQUESTS_ERROR');
});

it.each([
  ['fails', () => Promise.reject(new Error('clickhouse-7.internal refused'))],
  ['exceeds the deadline', () => new Promise<never>(() => {})],
])('GET activity-history returns 500 without details if the store %s', async (_case, readPage) => {
  const api = await openChainApi({ store: { readPage }, READ_DEADLINE_MS: 100 });
  const response = await api.get(HISTORY);
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines).toHaveLength(1);
});

it('GET activity-history returns 500 if no watermark could be read yet', async () => {
  const api = await openChainApi({ watermarks: { read: () => Promise.reject(new Error('ECONNREFUSED')) } });
  await api.put(activityRow());
  const response = await api.get(HISTORY);
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
});

it('GET activity-history returns 500 before the first watermark is published', async () => {
  const api = await openChainApi({ watermarks: { read: async () => null } });
  await api.put(activityRow());
  const response = await api.get(HISTORY);
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines.join()).toContain('No watermark is known');
});

it('GET activity-history returns 500 if rows are in a different partition than the watermark', async () => {
  const other = (PARTITION + 1) % 6;
  const api = await openChainApi({ watermarks: { read: async () => NOON_US + 1000 } });
  await api.put(activityRow({ partition: other }));
  const response = await api.get(HISTORY);
  expect(response.status).toBe(500);
  await expectEnvelope(response, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines.join()).toContain('ACTIVITY_PARTITIONS');
});
