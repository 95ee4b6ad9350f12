import { MissingFencesFault } from '@playline/people';
import { until } from '@playline/testkit';
import { afterEach, expect, it, vi } from 'vitest';
import { type CatchUp, createFencesWait, openCatchUp } from './synced-views.ts';

class LaggingError extends Error {}

let catchUp: CatchUp | undefined;
afterEach(() => catchUp?.close());

/** A view that may lag behind its log. */
interface View {
  isUpToDate: boolean;
  /** Number of updates that were started. */
  runs: number;
}

function open(run: (view: View) => Promise<void> = async () => {}) {
  const view: View = { isUpToDate: true, runs: 0 };
  const read = vi.fn(async () => {
    if (!view.isUpToDate) throw new LaggingError();
    return 'result';
  });
  const opened = openCatchUp({
    name: 'the view',
    run: async () => {
      view.runs += 1;
      await run(view);
      return null;
    },
    isLagging: (fault) => fault instanceof LaggingError,
    logger: { info: () => {}, warn: () => {} } as never,
  });
  catchUp = opened;
  return { view, read, query: () => opened.query(read) };
}

it('concurrent queries that find an incomplete copy are repeated after one update', async () => {
  const { view, query } = open(async (view) => {
    view.isUpToDate = true;
  });
  await until('the first update has finished', () => view.runs > 0);
  view.isUpToDate = false;
  expect(await Promise.all([query(), query(), query()])).toEqual(['result', 'result', 'result']);
});

it('queries do not wait for another update after an update left the copy incomplete, until one of them succeeds', async () => {
  const { view, read, query } = open();
  await until('the first update has finished', () => view.runs > 0);
  view.isUpToDate = false;
  await expect(query()).rejects.toThrow(LaggingError);
  read.mockClear();
  await expect(query()).rejects.toThrow(LaggingError);
  expect(read).toHaveBeenCalledTimes(1);
  view.isUpToDate = true;
  expect(await query()).toBe('result');
  view.isUpToDate = false;
  read.mockClear();
  await expect(query()).rejects.toThrow(LaggingError);
  expect(read).toHaveBeenCalledTimes(2);
});

it('a query waits for a second update if the first update was already running and left the copy incomplete', async () => {
  const runs: PromiseWithResolvers<void>[] = [];
  const { view, query } = open(async () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    await run.promise;
  });
  await until('an update has started', () => runs.length === 1);
  view.isUpToDate = false;
  const requested = query();
  await new Promise(setImmediate);
  runs[0]?.resolve();
  await until('another update has started', () => runs.length === 2);
  view.isUpToDate = true;
  runs[1]?.resolve();
  expect(await requested).toBe('result');
});

it('while the log is unavailable, queries fail without waiting for an update', async () => {
  let isUnavailable = false;
  const { view, read, query } = open(async (view) => {
    if (isUnavailable) throw new Error('no log');
    view.isUpToDate = true;
  });
  await until('the first update has finished', () => view.runs > 0);
  [view.isUpToDate, isUnavailable] = [false, true];
  await expect(query()).rejects.toThrow('no log');
  read.mockClear();
  await expect(query()).rejects.toThrow(LaggingError);
  expect(read).toHaveBeenCalledTimes(1);
  isUnavailable = false;
  await until('the copy is up to date', () => view.isUpToDate);
  view.isUpToDate = false;
  expect(await query()).toBe('result');
});

it('a query waits until the fences are set, but not after the wait of another query has timed out', async () => {
  const awaitFences = createFencesWait();
  let areSet = false;
  const read = vi.fn(async () => {
    if (!areSet) throw new MissingFencesFault();
    return 'result';
  });
  const requested = awaitFences(read);
  await until('the query was repeated', () => read.mock.calls.length > 1);
  areSet = true;
  expect(await requested).toBe('result');
  areSet = false;
  await expect(awaitFences(read)).rejects.toThrow(MissingFencesFault);
  read.mockClear();
  await expect(awaitFences(read)).rejects.toThrow(MissingFencesFault);
  expect(read).toHaveBeenCalledTimes(1);
});
