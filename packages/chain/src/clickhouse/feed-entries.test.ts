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
import type { QueryResult, QuerySettings } from './query-client.ts';

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

function createEngine(times: readonly number[]) {
  const requested: { start: number; end: number; settings: QuerySettings }[] = [];
  const toUs = (text: string) => Math.round(Number(text) * 1_000_000);
  const query = async (statement: string, _params: unknown, settings: QuerySettings): Promise<QueryResult> => {
    const [start, end] = [/updated_at >= '([\d.]+)'/, /updated_at < '([\d.]+)'/].map((bound) =>
      toUs(bound.exec(statement)?.[1] ?? String(Number.MAX_SAFE_INTEGER / 1e6)),
    ) as [number, number];
    requested.push({ start, end, settings });
    if (settings.max_rows_to_read !== undefined)
      throw new StoreFault('too many', { kind: 'transient', code: 'TOO_MANY_ROWS' });
    const found = times.filter((us) => us >= start && us < end);
    const isFirstOnly = statement.includes('LIMIT 1 ');
    const bytes = found
      .slice(0, isFirstOnly ? 1 : LIMIT)
      .map((us) => (isFirstOnly ? toBytes(us).subarray(1, 9) : toBytes(us)));
    return { bytes: Buffer.concat(bytes), readRows: 5_000 };
  };
  return { requested, read: createReadEntries({ query }) };
}

it('a feed reader makes its first window as wide as the previous page', async () => {
  const times = Array.from({ length: 100 }, (_, index) => NOON_US - HOUR_US + index * 1_000_000);
  const { requested, read } = createEngine(times);
  const { entries } = await read(query, LIMIT);
  expect(entries.map(({ updatedAt }) => updatedAt)).toEqual(times.slice(0, LIMIT));
  expect(requested).toMatchObject([{ start: 0, end: query.horizon }]);
  const secondPage = await read(query, LIMIT);
  expect(secondPage.entries.map(({ updatedAt }) => updatedAt)).toEqual(times.slice(0, LIMIT));
  expect(requested[1]!.start).toBe(times[0]);
  expect(requested[1]!.end - requested[1]!.start).toBeLessThan(10_000_000);
  expect(requested).toHaveLength(2);
});

it('a feed reader finds entries after a period without activity that is longer than any window', async () => {
  const times = [0, 1, 2, 3, 3_000_000_000].map((offsetUs) => NOON_US - HOUR_US + offsetUs);
  const { read } = createEngine(times);
  await read(query, LIMIT);
  const gap = { ...START_GAP, updatedAt: times[3]! + 1 } as const;
  const { entries, isFull } = await read({ ...query, gap }, LIMIT);
  expect([entries.map(({ updatedAt }) => updatedAt), isFull]).toEqual([[times[4]], false]);
});

it('a range can be read even if every window exceeds the row limit, as in a table with hundreds of parts', async () => {
  const times = [1, 2, 3].map((offsetUs) => NOON_US + offsetUs);
  const { requested, read } = createEngine(times);
  const filters = { ...NO_FILTERS, toIndexedAt: NOON_US };
  const gap = { ...START_GAP, updatedAt: NOON_US } as const;
  const { entries } = await read({ ...query, filters, gap, horizon: NOON_US + 2_000_000 }, LIMIT);
  expect(entries.map(({ updatedAt }) => updatedAt)).toEqual(times);
  expect(requested.length).toBeLessThan(20);
});

const SIZE_MAX = 4;

function createBatchEngine() {
  const requested: { queries: readonly number[]; respond: () => void }[] = [];
  const run = createQueryBatcher<number, string>({
    sizeMax: SIZE_MAX,
    waitMaxMs: 60_000,
    runAll: (queries) =>
      new Promise((resolve) => {
        requested.push({ queries, respond: () => resolve(queries.map((query) => `result ${query}`)) });
      }),
  });
  const batches = () => requested.map(({ queries }) => queries);
  return { run, requested, batches };
}

it('the batcher sends concurrent queries immediately in one batch when no batch is in flight', async () => {
  const { run, batches } = createBatchEngine();
  for (const query of [1, 2]) void run(query);
  await nextTick();
  expect(batches()).toEqual([[1, 2]]);
});

it('a query waits for the batch in flight and is then sent with the other waiting queries', async () => {
  const { run, requested, batches } = createBatchEngine();
  const first = run(1);
  await nextTick();
  const others = [run(2), run(3)];
  await nextTick();
  expect(batches()).toEqual([[1]]);
  requested[0]!.respond();
  expect(await first).toBe('result 1');
  await nextTick();
  expect(batches()).toEqual([[1], [2, 3]]);
  requested[1]!.respond();
  expect(await Promise.all(others)).toEqual(['result 2', 'result 3']);
});

it('a full batch is sent while another batch is in flight', async () => {
  const { run, batches } = createBatchEngine();
  void run(0);
  await nextTick();
  for (const query of [1, 2, 3, 4, 5]) void run(query);
  await nextTick();
  expect(batches()).toEqual([[0], [1, 2, 3, 4]]);
});

it('a query waits at most waitMaxMs even if the batch in flight takes longer', async () => {
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

const caller = fc.record({
  /** Ticks after the previous caller. */
  delayTicks: fc.nat(3),
  /** Ticks until a batch with this query completes. */
  durationTicks: fc.nat(4),
  isInvalid: fc.boolean(),
  /** A batch with this query fails although the query alone succeeds. */
  mustBeAlone: fc.boolean(),
});

const ticks = async (count: number) => {
  for (let tick = 0; tick < count; tick++) await nextTick();
};

it('every caller of the batcher receives the result or error of its own query', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(caller, { maxLength: 24 }), async (callers) => {
      const sizes: number[] = [];
      const run = createQueryBatcher<number, string>({
        sizeMax: SIZE_MAX,
        waitMaxMs: 1,
        runAll: async (queries) => {
          sizes.push(queries.length);
          const batchCallers = queries.map((query) => callers[query]!);
          await ticks(Math.max(...batchCallers.map(({ durationTicks }) => durationTicks)));
          const invalid = queries.find((query) => callers[query]!.isInvalid);
          if (invalid !== undefined) throw new Error(`${invalid} is invalid`);
          if (queries.length > 1 && batchCallers.some(({ mustBeAlone }) => mustBeAlone)) throw new Error('broken');
          return queries.map((query) => `result ${query}`);
        },
      });
      const results: Promise<PromiseSettledResult<string>[]>[] = [];
      for (const [query, { delayTicks }] of callers.entries()) {
        await ticks(delayTicks);
        results.push(Promise.allSettled([run(query)]));
      }
      expect((await Promise.all(results)).flat()).toEqual(
        callers.map(({ isInvalid }, query) =>
          isInvalid
            ? { status: 'rejected', reason: new Error(`${query} is invalid`) }
            : { status: 'fulfilled', value: `result ${query}` },
        ),
      );
      expect(Math.max(0, ...sizes)).toBeLessThanOrEqual(SIZE_MAX);
    }),
  );
});
