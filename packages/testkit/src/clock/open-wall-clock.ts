import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../until.ts';

const MODULE = new URL('set-by-signal.ts', import.meta.url).href;

/** The wall clock of a process started with `environment`. */
export interface WallClock {
  readonly environment: Readonly<Record<string, string>>;
  /** Shifts the clock by milliseconds. Resolves when the process has applied it. */
  set(child: ChildProcess, shiftMs: number): Promise<void>;
  close(): void;
}

/** A wall clock that a test can shift. The monotonic clock is unchanged. */
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
