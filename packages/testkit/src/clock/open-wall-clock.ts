import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../until.ts';

const MODULE = new URL('set-by-signal.ts', import.meta.url).href;

/** The wall clock of one process that is started with `environment`. */
export interface WallClock {
  readonly environment: Readonly<Record<string, string>>;
  /** Sets the clock this far from the true time, in milliseconds; resolves when the process has it. */
  set(child: ChildProcess, shiftMs: number): Promise<void>;
  close(): void;
}

/** A wall clock that a test sets back and forth, beside a monotonic one that stays honest. */
export function openWallClock(): WallClock {
  const folder = mkdtempSync(join(tmpdir(), 'test-clock-'));
  const file = join(folder, 'shift');
  return {
    environment: { NODE_OPTIONS: `--import=${MODULE}`, PLAYLINE_TEST_CLOCK: file },
    set: async (child, shiftMs) => {
      writeFileSync(file, String(shiftMs));
      child.kill('SIGUSR2');
      await until('the clock is set', () => readFileSync(`${file}.set`, 'utf8') === String(shiftMs));
    },
    close: () => rmSync(folder, { recursive: true }),
  };
}
