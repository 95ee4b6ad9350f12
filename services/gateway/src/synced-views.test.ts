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
  const question = vi.fn(async () => {
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
  return { view, question, ask: () => opened.query(question) };
}

it('a query of a synced copy is asked again after a catch-up, and so are questions that come meanwhile', async () => {
  const { view, ask } = open(async (view) => {
    view.level = true;
  });
  await until('it was looked at', () => view.runs > 0);
  view.level = false;
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(['answer', 'answer', 'answer']);
});

it('a query of a synced copy waits for no further catch-up after one that changed nothing, until a question has been answered', async () => {
  const { view, question, ask } = open();
  await until('it was looked at', () => view.runs > 0);
  view.level = false;
  await expect(ask()).rejects.toThrow(Lagging);
  question.mockClear();
  await expect(ask()).rejects.toThrow(Lagging);
  expect(question).toHaveBeenCalledTimes(1);
  view.level = true;
  expect(await ask()).toBe('answer');
  view.level = false;
  question.mockClear();
  await expect(ask()).rejects.toThrow(Lagging);
  expect(question).toHaveBeenCalledTimes(2);
});

it('a query of a synced copy starts another catch-up when the one that was running began before the question and did not help', async () => {
  const looks: PromiseWithResolvers<void>[] = [];
  const { view, ask } = open(async () => {
    const look = Promise.withResolvers<void>();
    looks.push(look);
    await look.promise;
  });
  await until('a look runs', () => looks.length === 1);
  view.level = false;
  const asked = ask();
  await new Promise(setImmediate);
  looks[0]?.resolve();
  await until('another look runs', () => looks.length === 2);
  view.level = true;
  looks[1]?.resolve();
  expect(await asked).toBe('answer');
});

it('a query of a synced copy waits for no catch-up while the log cannot be read, and does again after the first that succeeds', async () => {
  let isAway = false;
  const { view, question, ask } = open(async (view) => {
    if (isAway) throw new Error('no log');
    view.level = true;
  });
  await until('it was looked at', () => view.runs > 0);
  [view.level, isAway] = [false, true];
  await expect(ask()).rejects.toThrow('no log');
  question.mockClear();
  await expect(ask()).rejects.toThrow(Lagging);
  expect(question).toHaveBeenCalledTimes(1);
  isAway = false;
  await until('the watch has caught up', () => view.level);
  view.level = false;
  expect(await ask()).toBe('answer');
});
