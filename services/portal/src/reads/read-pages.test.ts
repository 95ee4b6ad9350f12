import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FIRST_LINES, readPages, toPage } from './query-view.ts';

/** Reads numbers that follow a place. @param asked gets how many each question asks for */
function createReadPage(count: number, asked: number[]) {
  return async (linesMax: number, place: number | undefined) => {
    asked.push(linesMax);
    const first = place === undefined ? 0 : place + 1;
    const lines = Array.from({ length: Math.max(0, Math.min(linesMax, count - first)) }, (_, at) => first + at);
    return toPage(lines, linesMax);
  };
}

it('a long answer has each line once and in order, up to its bound, and says where it was cut off', async () => {
  const counts = fc.integer({ min: 0, max: 1_000 });
  await fc.assert(
    fc.asyncProperty(
      ...([counts, counts, fc.integer({ min: 1, max: 400 })] as const),
      async (count, linesMax, perQuestion) => {
        const pages = readPages(createReadPage(count, []), { linesMax, perQuery: perQuestion });
        const found: number[] = [];
        let step = await pages.next();
        for (; step.done !== true; step = await pages.next()) found.push(...step.value);
        expect(found).toEqual(Array.from({ length: Math.min(count, linesMax) }, (_, at) => at));
        if (count > linesMax) expect(step.value).toBe(linesMax === 0 ? null : linesMax - 1);
      },
    ),
  );
});

it('the first question of a long answer is as small as a page, and each later one is large', async () => {
  const asked: number[] = [];
  for await (const _ of readPages(createReadPage(5_000, asked), { linesMax: 2_500, perQuery: 1_000 }));
  expect(asked).toEqual([FIRST_LINES, 1_000, 1_000, 400]);
});

it('a failure of the first question is thrown before there is a line', async () => {
  const pages = readPages(() => Promise.reject(new Error('the store is away')), { linesMax: 10, perQuery: 10 });
  await expect(pages.next()).rejects.toThrow('is away');
});
