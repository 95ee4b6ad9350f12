import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startStack } from './stack.ts';

const START_MS = 120_000;
const ABORT_LINES = ['starting kafka, registry, redis, clickhouse', 'clickhouse is ready'];

test.each(ABORT_LINES)(
  'a start that is aborted at "%s" fails once, without unhandled rejections',
  { timeout: START_MS },
  async (abortLine) => {
    const directory = mkdtempSync(join(tmpdir(), 'playline-aborted-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', onUnhandled);
    onTestFinished(() => void process.off('unhandledRejection', onUnhandled));
    const controller = new AbortController();
    const report = (line: string) => {
      if (line === abortLine) controller.abort();
    };
    const start = startStack({ directory, services: ['gateway'], signal: controller.signal, report });
    await expect(start).rejects.toThrow(/was stopped|is being stopped|failed/);
    await nextTurn();
    expect(unhandled).toEqual([]);
  },
);
