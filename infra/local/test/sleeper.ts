import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { StackPaths } from '../paths.ts';
import { markOf } from '../process-mark.ts';

/** A process that lives until the test ends. */
export function startSleeper(): number {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid ?? 0;
}

/** Writes the record of a killed supervisor. Without a mark, a process has its real one; one with id 0 has ended. */
export function leaveChildren(paths: StackPaths, processes: Record<string, number | { pid: number; mark: string }>) {
  const owner = { name: 'owner', pid: process.pid, mark: 'before a restart of the machine' };
  const children = Object.entries(processes).map(([name, of]) =>
    typeof of === 'number' ? { name, pid: of, mark: markOf(of) ?? 'gone' } : { name, ...of },
  );
  writeFileSync(join(paths.state, 'children.json'), JSON.stringify({ owner, children }));
}
