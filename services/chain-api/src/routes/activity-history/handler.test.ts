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

/** Reads pages until one is empty. @returns all ids, and the last cursor */
async function follow(api: TestChainApi, query: Record<string, string>): Promise<{ seen: string[]; cursor: string }> {
  const seen: string[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await api.history({ ...query, ...(cursor === undefined ? {} : { page_cursor: cursor }) });
    cursor = page.page.next_cursor;
    if (page.result.length === 0) return { seen, cursor };
    seen.push(...idsOf(page));
  }
}

it('GET activity-history returns activities with every member in the order of updated_at', async () => {
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

it('GET activity-history pages forwards over everything once, and continues with later rows at the end', async () => {
  const api = await openChainApi();
  const rows = rowsAt(0, 1, 2, 3, 4, 5, 6);
  await api.put(...rows);
  for (const page_size of ['1', '2', '3', '200']) {
    const { seen, cursor } = await follow(api, { page_size });
    expect(seen).toEqual(ids(rows));
    expect((await api.history({ page_size, page_cursor: cursor })).page.next_cursor).toBe(cursor);
  }
  const { cursor } = await follow(api, {});
  const [late] = rowsAt(7) as [ActivityRow];
  await api.put(late);
  expect(idsOf(await api.history({ page_cursor: cursor }))).toEqual([late.id]);
});

it('GET activity-history ends with everything published before the request, also while others read', async () => {
  // Makes everything happen at one moment.
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
  const [known, coming] = rowsAt(0, 10) as [ActivityRow, ActivityRow];
  await api.put(known, coming);
  const together = async () => (await Promise.all(Array.from({ length: 8 }, () => api.history()))).map(idsOf);
  expect(await together()).toEqual(Array(8).fill([known.id]));
  watermark = NOON_US + 10;
  expect(await together()).toEqual(Array(8).fill([known.id, coming.id]));
});

it('GET activity-history returns an empty page before the first watermark, whose cursor leads to everything later', async () => {
  const api = await openChainApi();
  const { result, page } = await api.history();
  expect(result).toEqual([]);
  const rows = rowsAt(0, 1);
  await api.put(...rows);
  expect(idsOf(await api.history({ page_cursor: page.next_cursor }))).toEqual(ids(rows));
});

it('GET activity-history goes back from a cursor of another process, also without a watermark', async () => {
  const { reader, activities } = createMemoryChain();
  const rows = rowsAt(0, 1, 2, 3);
  await putActivities(activities, rows);
  const shared = { store: reader, cursorSecret: randomBytes(32) };
  const api = await openChainApi({ ...shared, watermarks: { read: async () => NOON_US + 2 } });
  const { page, result } = await api.history({ page_size: '3' });
  expect(result.map(({ id }) => id)).toEqual(ids(rows.slice(0, 3)));
  const later = await api.history({ page_cursor: page.next_cursor });
  const unknowing = await openChainApi({ ...shared, watermarks: { read: async () => null } });
  expect(idsOf(await unknowing.history({ page_cursor: later.page.previous_cursor }))).toEqual(ids(rows.slice(0, 3)));
});

it('GET activity-history filters by contract, type and bounds of indexed_at together', async () => {
  const api = await openChainApi();
  const wanted = activityRow({ after: 5, type: 'sale', contractAddress: addressOf(7) });
  await api.put(
    wanted,
    activityRow({ after: 6, type: 'sale' }),
    activityRow({ after: 7, contractAddress: addressOf(7) }),
    activityRow({ after: 8, type: 'sale', contractAddress: addressOf(7), indexedAt: NOON_US - 1 }),
    activityRow({ after: 9, type: 'sale', contractAddress: addressOf(7), indexedAt: NOON_US + 6 }),
  );
  const query = { activity_type: 'sale', contract_address: addressOf(7), from_updated_at: NOON };
  expect(idsOf(await api.history({ ...query, to_updated_at: '2026-11-22T12:00:00.000005Z' }))).toEqual([wanted.id]);
});

it('GET activity-history serves one chain, under the watermark of its partition', async () => {
  const api = await openChainApi();
  const own = activityRow();
  const other = activityRow({ chain: OTHER_CHAIN.name, partition: OTHER_PARTITION, after: 5 });
  expect(OTHER_PARTITION).not.toBe(PARTITION);
  await api.put(own, other);
  expect(idsOf(await api.history())).toEqual([own.id]);
  const answer = await api.get(`/${OTHER_CHAIN.name}/activity-history`);
  expect(await answer.json()).toMatchObject({ result: [{ id: other.id, chain: OTHER_CHAIN }] });
});

it('GET activity-history has header fields of limit and caches, also for HEAD', async () => {
  const api = await openChainApi();
  for (const method of ['GET', 'HEAD']) {
    const answer = await fetch(`${api.url}/v1/chains/${CHAIN.name}/activity-history`, { method });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('private, no-cache');
    expect(answer.headers.get('ratelimit-policy')).toBe('"calls";q=1500;w=300');
  }
});

const HISTORY = `/${CHAIN.name}/activity-history`;

const cursorOf = async (api: TestChainApi) => {
  await api.put(activityRow());
  return (await api.history({ activity_type: 'mint' })).page.next_cursor;
};

async function expectRefused(answer: Response, ...fields: string[]): Promise<void> {
  expect(answer.status).toBe(400);
  const errors = fields.map((field) => ({ field, message: expect.stringContaining(field) }));
  await expectEnvelope(answer, 'VALIDATION_ERROR', { errors });
}

it('GET activity-history answers 400 with all invalid parameters', async () => {
  const api = await openChainApi();
  await expectRefused(await api.get(`${HISTORY}?page_size=201`), 'page_size');
  await expectRefused(
    await api.get(`${HISTORY}?page_size=0&activity_type=gift&from_updated_at=today`),
    'from_updated_at',
    'activity_type',
    'page_size',
  );
});

it('GET activity-history answers 400 to a bound under both of its names', async () => {
  const api = await openChainApi();
  const time = '2026-11-22T12:00:00Z';
  for (const bound of ['from', 'to'])
    await expectRefused(
      await api.get(`${HISTORY}?${bound}_updated_at=${time}&${bound}_indexed_at=${time}`),
      `${bound}_updated_at`,
    );
});

it('GET activity-history answers 400 to a cursor with any character changed', async () => {
  const api = await openChainApi();
  const cursor = await cursorOf(api);
  for (let at = 0; at < cursor.length; at++) {
    const edited = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1);
    await expectRefused(await api.get(`${HISTORY}?activity_type=mint&page_cursor=${edited}`), 'page_cursor');
  }
});

it('GET activity-history answers 400 to a cursor of other filters, another chain or another service', async () => {
  const api = await openChainApi();
  const cursor = await cursorOf(api);
  const foreign = await cursorOf(await openChainApi({ cursorSecret: randomBytes(32) }));
  for (const path of [
    `${HISTORY}?page_cursor=${cursor}`,
    `${HISTORY}?activity_type=sale&page_cursor=${cursor}`,
    `/${OTHER_CHAIN.name}/activity-history?activity_type=mint&page_cursor=${cursor}`,
    `${HISTORY}?activity_type=mint&page_cursor=${foreign}`,
  ])
    await expectRefused(await api.get(path), 'page_cursor');
  expect((await api.get(`${HISTORY}?activity_type=mint&page_size=7&page_cursor=${cursor}`)).status).toBe(200);
});

it('GET activity-history answers 400 to a query that is not percent-encoded UTF-8', async () => {
  const answer = await (await openChainApi()).get(`${HISTORY}?activity_type=%ff`);
  expect(answer.status).toBe(400);
  await expectEnvelope(answer, 'VALIDATION_ERROR');
});

it('GET activity-history answers 400 without a read of the store', async () => {
  const readPage = () => Promise.reject(new Error('read'));
  const api = await openChainApi({ store: { readPage } });
  expect((await api.get(`${HISTORY}?page_size=0`)).status).toBe(400);
  expect((await api.get(HISTORY)).status).toBe(500);
});

it('an address that has used up its calls gets 429 from both reads', async () => {
  const api = await openChainApi({ RATE_LIMIT_CALLS: 3 });
  const history = `/${CHAIN.name}/activity-history`;
  for (const path of [history, `/${CHAIN.name}/tokens/${addressOf(2)}`, `${history}?page_size=0`]) await api.get(path);
  const answer = await api.get(history);
  expect(answer.status).toBe(429);
  expect(answer.headers.get('retry-after')).toBe('300');
  await expectEnvelope(answer, 'TOO_MANY_REQUESTS_ERROR');
});

it.each([
  ['fails', () => Promise.reject(new Error('clickhouse-7.internal refused'))],
  ['takes longer than the deadline', () => new Promise<never>(() => {})],
])('GET activity-history answers 500 without the reason while the store %s', async (_case, readPage) => {
  const api = await openChainApi({ store: { readPage }, READ_DEADLINE_MS: 100 });
  const answer = await api.get(HISTORY);
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines).toHaveLength(1);
});

it('GET activity-history answers 500 until a watermark has been read once, although there are rows', async () => {
  const api = await openChainApi({ watermarks: { read: () => Promise.reject(new Error('ECONNREFUSED')) } });
  await api.put(activityRow());
  const answer = await api.get(HISTORY);
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
});

it('GET activity-history answers 500 to a forward cursor before the first watermark', async () => {
  const api = await openChainApi({ watermarks: { read: async () => null } });
  await api.put(activityRow());
  const answer = await api.get(HISTORY);
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines.join()).toContain('no watermark is known');
});

it('GET activity-history answers 500 when rows are in another partition than the watermark', async () => {
  const other = (PARTITION + 1) % 6;
  const api = await openChainApi({ watermarks: { read: async () => NOON_US + 1000 } });
  await api.put(activityRow({ partition: other }));
  const answer = await api.get(HISTORY);
  expect(answer.status).toBe(500);
  await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  expect(api.logLines.join()).toContain('ACTIVITY_PARTITIONS');
});
