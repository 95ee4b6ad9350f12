import { expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi, PARTITION } from '../../test/open-chain-api.ts';
import { activityRow, NOON_US } from '../../test/rows.ts';

const HISTORY = `/${CHAIN.name}/activity-history`;

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
