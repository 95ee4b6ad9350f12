import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inBatches } from './clickhouse-query.ts';

async function gather<T>(things: readonly T[], size: number): Promise<T[][]> {
  const batches: T[][] = [];
  for await (const batch of inBatches(sourceOf(things), size)) batches.push(batch);
  return batches;
}

async function* sourceOf<T>(things: readonly T[]): AsyncGenerator<T> {
  yield* things;
}

describe('batches', () => {
  it('hold all that the source brings, in its order, and only the last is shorter than asked for', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer(), { maxLength: 50 }),
        fc.integer({ min: 1, max: 20 }),
        async (things, size) => {
          const batches = await gather(things, size);
          expect(batches.flat()).toEqual(things);
          expect(batches.slice(0, -1).every(({ length }) => length === size)).toBe(true);
          expect(batches.every(({ length }) => length > 0 && length <= size)).toBe(true);
        },
      ),
    );
  });
});
