import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, OTHER_CHAIN, openChainApi, type TestChainApi } from '../../test/open-chain-api.ts';
import { activityRow } from '../../test/rows.ts';

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
