import { until } from '@playline/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type CatchUp, openCatchUp } from './catch-up.ts';

class Lagging extends Error {}

let catchUp: CatchUp | undefined;
afterEach(() => catchUp?.close());

/** A view that lags until `level` is set, and counts how often it was caught up while somebody asked. */
function open(run: () => Promise<void> = async () => {}) {
  const view = { level: true, runs: 0 };
  const question = vi.fn(async () => {
    if (!view.level) throw new Lagging();
    return 'answer';
  });
  const opened = openCatchUp({
    name: 'the view',
    run: async () => {
      view.runs += 1;
      await run();
      return null;
    },
    isLagging: (fault) => fault instanceof Lagging,
    logger: { info: () => {}, warn: () => {} } as never,
  });
  catchUp = opened;
  return { view, question, ask: () => opened.ask(question) };
}

describe('a question to a view of a log', () => {
  it('is asked again behind a catch-up, and so are those that come meanwhile', async () => {
    const { view, ask } = open(async () => {
      view.level = true;
    });
    await until('it was looked at', () => view.runs > 0);
    view.level = false;
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['answer', 'answer', 'answer']);
  });

  it('waits for no further catch-up while one was in vain, and for one again once it was answered', async () => {
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

  it('waits for no further catch-up either while the log cannot be had', async () => {
    const { view, question, ask } = open(async () => {
      if (!view.level) throw new Error('no log');
    });
    await until('it was looked at', () => view.runs > 0);
    view.level = false;
    await expect(ask()).rejects.toThrow('no log');
    question.mockClear();
    await expect(ask()).rejects.toThrow(Lagging);
    expect(question).toHaveBeenCalledTimes(1);
  });
});
