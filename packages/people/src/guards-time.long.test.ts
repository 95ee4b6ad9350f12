import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, expect, it } from 'vitest';
import type { ErasureHold } from './guards.ts';
import { openTestPeople } from './test/test-people.ts';

const testPeople = openTestPeople();
afterAll(testPeople.close);

const newKey = () => randomBytes(16);
const createHold = (fields: Partial<ErasureHold> = {}): ErasureHold => ({
  environmentId: `test-${randomUUID()}`,
  erasureId: randomBytes(16),
  keys: [newKey()],
  cutoffMs: Date.UTC(2026, 0, 1),
  lapsesAtMs: Date.UTC(2026, 0, 1) + 60_000,
  ...fields,
});

it('releasing a hold takes constant time regardless of the number of holds', async () => {
  const { guards: holds } = (await testPeople.open()).people;
  const keysOf = (count: number) => Array.from({ length: count }, newKey);
  const measure = async (environmentId: string): Promise<number> => {
    const hold = createHold({ environmentId, keys: keysOf(50) });
    await holds.putHold(hold);
    const start = performance.now();
    await holds.releaseHold(hold);
    return performance.now() - start;
  };
  for (let count = 0; count < 1_000; count++)
    await holds.putHold(createHold({ environmentId: 'many', keys: keysOf(100), lapsesAtMs: null }));
  const [few, many]: [number[], number[]] = [[], []];
  for (let round = 0; round < 7; round++) {
    few.push(await measure('few'));
    many.push(await measure('many'));
  }
  // Compares the fastest of seven runs because other load on the machine may slow down some runs.
  expect(Math.min(...many) / Math.min(...few)).toBeLessThan(5);
});
