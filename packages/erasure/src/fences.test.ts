import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createFences } from './fences.ts';
import { openMemoryErasureRecords } from './memory/records.ts';

const fence = { environmentId: 'env', key: randomBytes(16), cutoffMs: 7, erasureId: randomBytes(16) };

it('a fence stands in the column store before it stands in Redis, and in neither when the column store is away', async () => {
  const records = openMemoryErasureRecords(() => 0);
  const seen: string[] = [];
  const { putFences } = records;
  records.putFences = async (put) => {
    await putFences(put);
    seen.push('column store');
  };
  const fences = createFences(records, { fence: async (cutoffs) => void seen.push(`guard ${cutoffs[0]!.cutoffMs}`) });
  await fences.raise([fence]);
  expect(seen).toEqual(['column store', 'guard 7']);
  for await (const stored of records.readFences()) expect(stored).toMatchObject(fence);
  records.putFences = () => Promise.reject(new Error('away'));
  await expect(fences.raise([fence])).rejects.toThrow('away');
  expect(seen).toHaveLength(2);
});
