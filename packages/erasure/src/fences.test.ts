import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { raiseFences, readCutoffs, readFenceSet } from './fences.ts';
import type { StoredFence } from './records.ts';
import type { ErasureTarget } from './rows.ts';
import { openMemoryErasureRecords } from './test/memory/records.ts';

const fence = { environmentId: 'env', key: randomBytes(16), cutoffMs: 7, erasureId: randomBytes(16) };

it('a fence is written to ClickHouse before Redis, and to neither if ClickHouse is unavailable', async () => {
  const records = openMemoryErasureRecords(() => 0);
  const log: string[] = [];
  const { putFences } = records;
  records.putFences = async (put) => {
    await putFences(put);
    log.push('clickhouse');
  };
  const guard = { fence: async (cutoffs: readonly ErasureTarget[]) => void log.push(`guard ${cutoffs[0]!.cutoffMs}`) };
  await raiseFences(records, guard, [fence]);
  expect(log).toEqual(['clickhouse', 'guard 7']);
  for await (const stored of records.readFences()) expect(stored).toMatchObject(fence);
  records.putFences = () => Promise.reject(new Error('unavailable'));
  await expect(raiseFences(records, guard, [fence])).rejects.toThrow('unavailable');
  expect(log).toHaveLength(2);
});

it('the latest cut-off applies if the store returns a fence several times in any order', async () => {
  const [key, other] = [randomBytes(16), randomBytes(16)];
  const stored = [
    { key, cutoffMs: 7 },
    { key: other, cutoffMs: 8 },
    { key, cutoffMs: 9 },
    { key, cutoffMs: 5 },
    { key, cutoffMs: 6, environmentId: 'elsewhere' },
  ].map((each): StoredFence => ({ ...fence, fencedAtMs: 0, part: 'p', ...each }));
  const records = {
    async *readFences() {
      yield* stored;
    },
  };
  expect(await readCutoffs(records)).toEqual([
    { environmentId: 'env', key, cutoffMs: 9 },
    { environmentId: 'env', key: other, cutoffMs: 8 },
    { environmentId: 'elsewhere', key, cutoffMs: 6 },
  ]);
  const fences = await readFenceSet(records);
  const isFenced = (atMs: number, laterMs: number) =>
    fences.isFenced({ environmentId: 'env', key, eventTimeMs: atMs, receivedAtMs: laterMs });
  expect([isFenced(9, 10), isFenced(10, 9), isFenced(10, 10)]).toEqual([true, true, false]);
});
