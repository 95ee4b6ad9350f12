import { until } from '@playline/testkit';
import { afterEach, expect, it, vi } from 'vitest';
import { type CatchUp, openCatchUp } from './synced-views.ts';

class Lagging extends Error {}

let catchUp: CatchUp | undefined;
afterEach(() => catchUp?.close());

/** A view that may lag behind its log; `runs` counts how often it was brought up to date. */
interface View {
  level: boolean;
  runs: number;
}

function open(run: (view: View) => Promise<void> = async () => {}) {
  const view: View = { level: true, runs: 0 };
  const answerOf = vi.fn(async () => {
    if (!view.level) throw new Lagging();
    return 'answer';
  });
  const opened = openCatchUp({
    name: 'the view',
    run: async () => {
      view.runs += 1;
      await run(view);
      return null;
    },
    isLagging: (fault) => fault instanceof Lagging,
    logger: { info: () => {}, warn: () => {} } as never,
  });
  catchUp = opened;
  return { view, answerOf, query: () => opened.query(answerOf) };
}

it('a query of a synced copy is repeated after a catch-up, and so are those that come during it', async () => {
  const { view, query } = open(async (view) => {
    view.level = true;
  });
  await until('the first run is over', () => view.runs > 0);
  view.level = false;
  expect(await Promise.all([query(), query(), query()])).toEqual(['answer', 'answer', 'answer']);
});

it('a query of a synced copy waits for no further catch-up after one that changed nothing, until a query has been answered', async () => {
  const { view, answerOf, query } = open();
  await until('the first run is over', () => view.runs > 0);
  view.level = false;
  await expect(query()).rejects.toThrow(Lagging);
  answerOf.mockClear();
  await expect(query()).rejects.toThrow(Lagging);
  expect(answerOf).toHaveBeenCalledTimes(1);
  view.level = true;
  expect(await query()).toBe('answer');
  view.level = false;
  answerOf.mockClear();
  await expect(query()).rejects.toThrow(Lagging);
  expect(answerOf).toHaveBeenCalledTimes(2);
});

it('a query of a synced copy starts another catch-up when the one that was running began before the query and did not help', async () => {
  const runs: PromiseWithResolvers<void>[] = [];
  const { view, query } = open(async () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    await run.promise;
  });
  await until('a run has begun', () => runs.length === 1);
  view.level = false;
  const requested = query();
  await new Promise(setImmediate);
  runs[0]?.resolve();
  await until('another run has begun', () => runs.length === 2);
  view.level = true;
  runs[1]?.resolve();
  expect(await requested).toBe('answer');
});

it('a query of a synced copy waits for no catch-up while the log cannot be read, and does again after the first that succeeds', async () => {
  let isAway = false;
  const { view, answerOf, query } = open(async (view) => {
    if (isAway) throw new Error('no log');
    view.level = true;
  });
  await until('the first run is over', () => view.runs > 0);
  [view.level, isAway] = [false, true];
  await expect(query()).rejects.toThrow('no log');
  answerOf.mockClear();
  await expect(query()).rejects.toThrow(Lagging);
  expect(answerOf).toHaveBeenCalledTimes(1);
  isAway = false;
  await until('the watch has caught up', () => view.level);
  view.level = false;
  expect(await query()).toBe('answer');
});
