import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startStack } from './stack.ts';

/** Stores that begin and are stopped at once, on a busy machine. */
const START_MS = 120_000;
/** Words of a start, by which it is known how far it has come. */
const MOMENTS = ['starting kafka, registry, redis, clickhouse', 'clickhouse is ready'];

test.each(MOMENTS)(
  'a start that is ended at "%s" fails as one, and nothing of it fails unheard',
  {
    timeout: START_MS,
  },
  async (moment) => {
    const directory = mkdtempSync(join(tmpdir(), 'playline-aborted-'));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    const unheard: unknown[] = [];
    const note = (reason: unknown) => unheard.push(reason);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const over = new AbortController();
    const say = (line: string) => {
      if (line === moment) over.abort();
    };
    const start = startStack({ directory, services: ['gateway'], signal: over.signal, say });
    await expect(start).rejects.toThrow(/was stopped|is being stopped|failed/);
    // Node tells of a rejection that nobody has heard by the end of a turn.
    await turn();
    expect(unheard).toEqual([]);
  },
);
