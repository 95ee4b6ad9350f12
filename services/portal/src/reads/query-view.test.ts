import { ClickHouseFault, type QueryRows } from '@playline/stores';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createQueryView, FIRST_LINES, number, readPages, toPage } from './query-view.ts';

it('a query of a view throws TOO_MANY_REQUESTS_ERROR with a retry time if the project quota is exceeded', async () => {
  const query: QueryRows = () => {
    throw new ClickHouseFault(500, '201', 'QUOTA_EXCEEDED');
  };
  const viewQuery = { view: 'portal_tokens', args: {}, columns: { a: number('a') }, rowsMax: 1 };
  await expect(createQueryView(query)(viewQuery)).rejects.toMatchObject({
    code: 'TOO_MANY_REQUESTS_ERROR',
    retryAfterS: 10,
  });
});

/** Returns a `readPage` over consecutive numbers. @param sizes collects the number of lines that each query requests */
function createReadPage(count: number, sizes: number[] = []) {
  return async (linesMax: number, after: number | undefined) => {
    sizes.push(linesMax);
    const first = after === undefined ? 0 : after + 1;
    const lines = Array.from({ length: Math.max(0, Math.min(linesMax, count - first)) }, (_, index) => first + index);
    return toPage(lines, linesMax);
  };
}

it('readPages yields each line once and in order, and returns the position at which it was truncated', async () => {
  const counts = fc.integer({ min: 0, max: 1_000 });
  await fc.assert(
    fc.asyncProperty(counts, counts, fc.integer({ min: 1, max: 400 }), async (count, linesMax, perQuery) => {
      const pages = readPages(createReadPage(count), { linesMax, perQuery });
      const found: number[] = [];
      let step = await pages.next();
      for (; step.done !== true; step = await pages.next()) found.push(...step.value);
      expect(found).toEqual(Array.from({ length: Math.min(count, linesMax) }, (_, index) => index));
      if (count > linesMax) expect(step.value).toBe(linesMax === 0 ? null : linesMax - 1);
    }),
  );
});

it('readPages reads few lines with the first query and more lines with each later query', async () => {
  const sizes: number[] = [];
  for await (const _ of readPages(createReadPage(5_000, sizes), { linesMax: 2_500, perQuery: 1_000 }));
  expect(sizes).toEqual([FIRST_LINES, 1_000, 1_000, 400]);
});
