import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startStack } from './stack.ts';

/** Time to start and stop stores on a busy machine. */
const START_MS = 120_000;
const MOMENTS = ['starting kafka, registry, redis, clickhouse', 'clickhouse is ready'];

test.each(MOMENTS)(
  'a start that is aborted at "%s" fails once, and leaves no unhandled rejection',
  { timeout: START_MS },
  async (moment) => {
    const directory = mkdtempSync(join(tmpdir(), 'playline-aborted-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const over = new AbortController();
    const report = (line: string) => {
      if (line === moment) over.abort();
    };
    const start = startStack({ directory, services: ['gateway'], signal: over.signal, report });
    await expect(start).rejects.toThrow(/was stopped|is being stopped|failed/);
    // Node reports a rejection that is unhandled at the end of a turn.
    await turn();
    expect(unhandled).toEqual([]);
  },
);
