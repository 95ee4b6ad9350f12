import fc from 'fast-check';
import { expect, it } from 'vitest';
import { inBatches } from './clickhouse-query.ts';

async function* sourceOf<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

it('batches contain all items in order, and only the last batch may be smaller', async () => {
  const items = fc.array(fc.integer(), { maxLength: 50 });
  const property = fc.asyncProperty(items, fc.integer({ min: 1, max: 20 }), async (sourceItems, size) => {
    const batches: number[][] = [];
    for await (const batch of inBatches(sourceOf(sourceItems), size)) batches.push(batch);
    expect(batches.flat()).toEqual(sourceItems);
    expect(batches.slice(0, -1).every(({ length }) => length === size)).toBe(true);
    expect(batches.every(({ length }) => length > 0 && length <= size)).toBe(true);
  });
  await fc.assert(property);
});
