import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { StackPaths } from '../paths.ts';
import { markOf } from '../process-mark.ts';

export function startSleeper(): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid ?? 0;
}

/** Writes the children file of a killed supervisor. The default mark is the actual mark; pid 0 means exited. */
export function writeChildrenFile(
  paths: StackPaths,
  processes: Record<string, number | { pid: number; mark: string }>,
) {
  const owner = { name: 'owner', pid: process.pid, mark: 'before a reboot' };
  const children = Object.entries(processes).map(([name, entry]) =>
    typeof entry === 'number' ? { name, pid: entry, mark: markOf(entry) ?? 'gone' } : { name, ...entry },
  );
  writeFileSync(join(paths.state, 'children.json'), JSON.stringify({ owner, children }));
}
