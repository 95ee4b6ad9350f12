import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityRow } from '@playline/chain';
import { createMemoryChain, putActivities } from '@playline/chain/memory';
import { ACTIVITY_TYPES } from '@playline/contracts';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  CHAIN,
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

it.each(ACTIVITY_TYPES)('GET activity-history returns the details of a %s unchanged', async (type) => {
  const api = await openChainApi();
  await api.put(activityRow({ type }));
  expect((await api.history()).result[0]).toMatchObject({ type, details: DETAILS[type] });
});
