import { setImmediate as nextTick } from 'node:timers/promises';
import { StoreFault } from '@playline/stores';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { START_GAP } from '../cursor.ts';
import type { PageQuery } from '../store.ts';
import { NO_FILTERS } from '../store.ts';
import { activityRow, NOON_US } from '../test/rows.ts';
import { toShownActivity } from '../wire.ts';
import { createQueryBatcher, createReadEntries } from './feed-entries.ts';
import type { Answer, QuerySettings } from './query-client.ts';

const HOUR_US = 3_600_000_000;
const query: PageQuery = {
  chain: 'main',
  filters: NO_FILTERS,
  gap: START_GAP,
  direction: 'next',
  limit: 10,
  horizon: NOON_US + HOUR_US,
};
const LIMIT = 4;

/** A version in the format of ClickHouse's answer. */
function toBytes(updatedAt: number): Buffer {
  const { id, members } = toShownActivity(activityRow({ updatedAt }));
  const head = Buffer.alloc(8);
  head.writeBigInt64LE(BigInt(updatedAt));
  const length = Buffer.from([(members.length & 127) | 128, members.length >> 7]);
  return Buffer.concat([
    Buffer.from([0]),
    head,
    Buffer.from([id.length]),
    Buffer.from(id),
    Buffer.from([2, 0, 0]),
    length,
    members,
  ]);
}

/** A simulated store with versions at these times. Records the requested windows. */
function createEngine(times: readonly number[]) {
  const requested: { least: number; end: number; settings: QuerySettings }[] = [];
  const toUs = (text: string) => Math.round(Number(text) * 1_000_000);
  const query = async (statement: string, _params: unknown, settings: QuerySettings): Promise<Answer> => {
    const [least, end] = [/updated_at >= '([\d.]+)'/, /updated_at < '([\d.]+)'/].map((bound) =>
      toUs(bound.exec(statement)?.[1] ?? String(Number.MAX_SAFE_INTEGER / 1e6)),
    ) as [number, number];
    requested.push({ least, end, settings });
    if (settings.max_rows_to_read !== undefined)
      throw new StoreFault('too many', { kind: 'passing', code: 'TOO_MANY_ROWS' });
    const found = times.filter((us) => us >= least && us < end);
    const isName = statement.includes('LIMIT 1 ');
    const bytes = found.slice(0, isName ? 1 : LIMIT).map((us) => (isName ? toBytes(us).subarray(1, 9) : toBytes(us)));
    return { bytes: Buffer.concat(bytes), readRows: 5_000 };
  };
  return { requested, read: createReadEntries({ query }) };
}

it('the first window of a feed is as wide as its last page', async () => {
  const times = Array.from({ length: 100 }, (_, index) => NOON_US - HOUR_US + index * 1_000_000);
  const { requested, read } = createEngine(times);
  const { entries } = await read(query, LIMIT);
  expect(entries.map(({ updatedAt }) => updatedAt)).toEqual(times.slice(0, LIMIT));
  expect(requested).toMatchObject([{ least: 0, end: query.horizon }]);
  const again = await read(query, LIMIT);
  expect(again.entries.map(({ updatedAt }) => updatedAt)).toEqual(times.slice(0, LIMIT));
  expect(requested[1]!.least).toBe(times[0]);
  expect(requested[1]!.end - requested[1]!.least).toBeLessThan(10_000_000);
  expect(requested).toHaveLength(2);
});

it('entries of a feed are found after a pause longer than any window', async () => {
  const times = [0, 1, 2, 3, 3_000_000_000].map((later) => NOON_US - HOUR_US + later);
  const { read } = createEngine(times);
  await read(query, LIMIT);
  const gap = { ...START_GAP, updatedAt: times[3]! + 1 } as const;
  const { entries, isFull } = await read({ ...query, gap }, LIMIT);
  expect([entries.map(({ updatedAt }) => updatedAt), isFull]).toEqual([[times[4]], false]);
});

it('a range is read when no window is below its row limit, as with hundreds of parts', async () => {
  const times = [1, 2, 3].map((later) => NOON_US + later);
  const { requested, read } = createEngine(times);
  const filters = { ...NO_FILTERS, toIndexedAt: NOON_US };
  const gap = { ...START_GAP, updatedAt: NOON_US } as const;
  const { entries } = await read({ ...query, filters, gap, horizon: NOON_US + 2_000_000 }, LIMIT);
  expect(entries.map(({ updatedAt }) => updatedAt)).toEqual(times);
  expect(requested.length).toBeLessThan(20);
});

const SIZE_MAX = 4;

/** A simulated store. Records its batches, and answers when the test allows it. */
function createBatchEngine() {
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
  const { run, together } = createBatchEngine();
  for (const query of [1, 2]) void run(query);
  await nextTick();
  expect(together()).toEqual([[1, 2]]);
});

it('a query waits for the batch in flight and is sent with other waiting queries', async () => {
  const { run, requested, together } = createBatchEngine();
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
  const { run, together } = createBatchEngine();
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
