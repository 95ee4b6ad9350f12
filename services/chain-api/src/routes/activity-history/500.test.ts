import { describe, expect, it } from 'vitest';
import { CHAIN, expectEnvelope, openChainApi, PARTITION } from '../../test/open-chain-api.ts';
import { activityRow, NOON_US } from '../../test/rows.ts';

const HISTORY = `/${CHAIN.name}/activity-history`;

describe('500', () => {
  it.each([
    ['fails', () => Promise.reject(new Error('clickhouse-7.internal refused'))],
    ['takes longer than the deadline', () => new Promise<never>(() => {})],
  ])('answers while the store %s, and tells callers nothing', async (_case, readPage) => {
    const api = await openChainApi({ store: { readPage }, READ_DEADLINE_MS: 100 });
    const answer = await api.get(HISTORY);
    expect(answer.status).toBe(500);
    await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
    expect(api.logLines).toHaveLength(1);
  });

  it('answers until a watermark has been read for the first time, although there are rows', async () => {
    const api = await openChainApi({ watermarks: { read: () => Promise.reject(new Error('ECONNREFUSED')) } });
    await api.put(activityRow());
    const answer = await api.get(HISTORY);
    expect(answer.status).toBe(500);
    await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
  });

  it('answers a reader with a cursor before the first watermark, because an empty page would look like the end', async () => {
    const api = await openChainApi({ watermarks: { read: async () => null } });
    await api.put(activityRow());
    const answer = await api.get(HISTORY);
    expect(answer.status).toBe(500);
    await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
    expect(api.logLines.join()).toContain('nobody has said yet how far');
  });

  it('answers when rows are in another partition than that of the watermark, because some could be missed', async () => {
    const other = (PARTITION + 1) % 6;
    const api = await openChainApi({ watermarks: { read: async () => NOON_US + 1000 } });
    await api.put(activityRow({ partition: other }));
    const answer = await api.get(HISTORY);
    expect(answer.status).toBe(500);
    await expectEnvelope(answer, 'INTERNAL_SERVER_ERROR');
    expect(api.logLines.join()).toContain('ACTIVITY_PARTITIONS');
  });
});
