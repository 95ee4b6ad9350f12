import { setImmediate as nextTick } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createQueryBatcher } from './query-batcher.ts';

const SIZE_MAX = 4;

/** A simulated store. Records its batches, and answers when the test allows it. */
function createEngine() {
  const requested: { queries: readonly number[]; answer: () => void }[] = [];
  const run = createQueryBatcher<number, string>({
    sizeMax: SIZE_MAX,
    waitMaxMs: 60_000,
    runAll: (queries) =>
      new Promise((resolve) => {
        requested.push({ queries, answer: () => resolve(queries.map((query) => `answer ${query}`)) });
      }),
  });
  const together = () => requested.map(({ queries }) => queries);
  return { run, requested, together };
}

it('a query is sent immediately with others of the same moment when no batch is in flight', async () => {
  const { run, together } = createEngine();
  for (const query of [1, 2]) void run(query);
  await nextTick();
  expect(together()).toEqual([[1, 2]]);
});

it('a query waits for the batch in flight and is sent with other waiting queries', async () => {
  const { run, requested, together } = createEngine();
  const first = run(1);
  await nextTick();
  const others = [run(2), run(3)];
  await nextTick();
  expect(together()).toEqual([[1]]);
  requested[0]!.answer();
  expect(await first).toBe('answer 1');
  await nextTick();
  expect(together()).toEqual([[1], [2, 3]]);
  requested[1]!.answer();
  expect(await Promise.all(others)).toEqual(['answer 2', 'answer 3']);
});

it('a full batch is sent while another one is in flight', async () => {
  const { run, together } = createEngine();
  void run(0);
  await nextTick();
  for (const query of [1, 2, 3, 4, 5]) void run(query);
  await nextTick();
  expect(together()).toEqual([[0], [1, 2, 3, 4]]);
});

it('a query waits at most its limit, however long a batch takes', async () => {
  const requested: (readonly number[])[] = [];
  const second = Promise.withResolvers<void>();
  const run = createQueryBatcher<number, never>({
    sizeMax: SIZE_MAX,
    waitMaxMs: 1,
    runAll: (queries) => {
      if (requested.push(queries) === 2) second.resolve();
      return new Promise(() => {});
    },
  });
  void run(1);
  await nextTick();
  void run(2);
  await second.promise;
  expect(requested).toEqual([[1], [2]]);
});

/** A query, its time, and how the store reacts. */
const caller = fc.record({
  /** Ticks after the previous caller. */
  later: fc.nat(3),
  /** Ticks until the answer of a batch with this query. */
  takes: fc.nat(4),
  isWrong: fc.boolean(),
  /** A batch with this query fails although the query alone succeeds. */
  breaksTurns: fc.boolean(),
});

const ticks = async (count: number) => {
  for (let tick = 0; tick < count; tick++) await nextTick();
};

it('every caller of the batcher gets the answer or error of its own query', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(caller, { maxLength: 24 }), async (callers) => {
      const sizes: number[] = [];
      const run = createQueryBatcher<number, string>({
        sizeMax: SIZE_MAX,
        waitMaxMs: 1,
        runAll: async (queries) => {
          sizes.push(queries.length);
          const own = queries.map((query) => callers[query]!);
          await ticks(Math.max(...own.map(({ takes }) => takes)));
          const wrong = queries.find((query) => callers[query]!.isWrong);
          if (wrong !== undefined) throw new Error(`${wrong} is wrong`);
          if (queries.length > 1 && own.some(({ breaksTurns }) => breaksTurns)) throw new Error('broken');
          return queries.map((query) => `answer ${query}`);
        },
      });
      const answers: Promise<PromiseSettledResult<string>[]>[] = [];
      for (const [query, { later }] of callers.entries()) {
        await ticks(later);
        answers.push(Promise.allSettled([run(query)]));
      }
      expect((await Promise.all(answers)).flat()).toEqual(
        callers.map(({ isWrong }, query) =>
          isWrong
            ? { status: 'rejected', reason: new Error(`${query} is wrong`) }
            : { status: 'fulfilled', value: `answer ${query}` },
        ),
      );
      expect(Math.max(0, ...sizes)).toBeLessThanOrEqual(SIZE_MAX);
    }),
  );
});
