import { setImmediate as nextTick } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createQueryBatcher } from './feed-entries.ts';

const SIZE_MAX = 4;

/** A simulated store. It records the batches that it gets, and answers when the test says so. */
function createEngine() {
  const asked: { questions: readonly number[]; answer: () => void }[] = [];
  const ask = createQueryBatcher<number, string>({
    sizeMax: SIZE_MAX,
    waitMaxMs: 60_000,
    runAll: (questions) =>
      new Promise((resolve) => {
        asked.push({ questions, answer: () => resolve(questions.map((question) => `answer ${question}`)) });
      }),
  });
  const together = () => asked.map(({ questions }) => questions);
  return { ask, asked, together };
}

describe('a question', () => {
  it('is sent at once while no batch is in flight, with those of the same moment', async () => {
    const { ask, together } = createEngine();
    for (const question of [1, 2]) void ask(question);
    await nextTick();
    expect(together()).toEqual([[1, 2]]);
  });

  it('waits for others while a batch is in flight, and is sent with them when that has ended', async () => {
    const { ask, asked, together } = createEngine();
    const first = ask(1);
    await nextTick();
    const others = [ask(2), ask(3)];
    await nextTick();
    expect(together()).toEqual([[1]]);
    asked[0]!.answer();
    expect(await first).toBe('answer 1');
    await nextTick();
    expect(together()).toEqual([[1], [2, 3]]);
    asked[1]!.answer();
    expect(await Promise.all(others)).toEqual(['answer 2', 'answer 3']);
  });

  it('waits no longer than until a batch is full', async () => {
    const { ask, together } = createEngine();
    void ask(0);
    await nextTick();
    for (const question of [1, 2, 3, 4, 5]) void ask(question);
    await nextTick();
    expect(together()).toEqual([[0], [1, 2, 3, 4]]);
  });

  it('waits no longer than its limit, however long a batch takes', async () => {
    const asked: (readonly number[])[] = [];
    const second = Promise.withResolvers<void>();
    const ask = createQueryBatcher<number, never>({
      sizeMax: SIZE_MAX,
      waitMaxMs: 1,
      runAll: (questions) => {
        if (asked.push(questions) === 2) second.resolve();
        return new Promise(() => {});
      },
    });
    void ask(1);
    await nextTick();
    void ask(2);
    await second.promise;
    expect(asked).toEqual([[1], [2]]);
  });
});

/** A question, its time, and how the store reacts to it. */
const caller = fc.record({
  /** Ticks after the previous caller. */
  later: fc.nat(3),
  /** Ticks until the answer of a batch with this question. */
  takes: fc.nat(4),
  isWrong: fc.boolean(),
  /** A batch with this question fails although each question alone succeeds. */
  breaksTurns: fc.boolean(),
});

const ticks = async (count: number) => {
  for (let tick = 0; tick < count; tick++) await nextTick();
};

describe('any callers, faults and times', () => {
  it('give each caller the answer or the fault that it would get alone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(caller, { maxLength: 24 }), async (callers) => {
        const sizes: number[] = [];
        const ask = createQueryBatcher<number, string>({
          sizeMax: SIZE_MAX,
          waitMaxMs: 1,
          runAll: async (questions) => {
            sizes.push(questions.length);
            const own = questions.map((question) => callers[question]!);
            await ticks(Math.max(...own.map(({ takes }) => takes)));
            const wrong = questions.find((question) => callers[question]!.isWrong);
            if (wrong !== undefined) throw new Error(`${wrong} is wrong`);
            if (questions.length > 1 && own.some(({ breaksTurns }) => breaksTurns)) throw new Error('broken');
            return questions.map((question) => `answer ${question}`);
          },
        });
        const answers: Promise<PromiseSettledResult<string>[]>[] = [];
        for (const [question, { later }] of callers.entries()) {
          await ticks(later);
          answers.push(Promise.allSettled([ask(question)]));
        }
        expect((await Promise.all(answers)).flat()).toEqual(
          callers.map(({ isWrong }, question) =>
            isWrong
              ? { status: 'rejected', reason: new Error(`${question} is wrong`) }
              : { status: 'fulfilled', value: `answer ${question}` },
          ),
        );
        expect(Math.max(0, ...sizes)).toBeLessThanOrEqual(SIZE_MAX);
      }),
    );
  });
});
