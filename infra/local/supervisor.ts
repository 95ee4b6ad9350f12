// `supervisor.pid`: which process supervises the stack of a checkout.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endOrphans } from './children.ts';
import type { StackPaths } from './paths.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { removeStackFile } from './stack-file.ts';

/** Services stop within 26 s, stores within 30 s. */
const SUPERVISOR_GRACE_MS = 60_000;

const pathOf = (paths: StackPaths) => join(paths.state, 'supervisor.pid');

/** The process id is on the first line, the mark on the second. */
function readRecord(paths: StackPaths): ProcessRecord | null {
  try {
    const [pid, mark = ''] = readFileSync(pathOf(paths), 'utf8').split('\n');
    return { name: 'supervisor', pid: Number(pid), mark };
  } catch {
    return null;
  }
}

/** The living supervisor, or null. A different process with the same id does not count. */
export function findSupervisor(paths: StackPaths): ProcessRecord | null {
  const record = readRecord(paths);
  return record !== null && isAlive(record) ? record : null;
}

/** When the supervisor started (ISO 8601); '' without one. */
export const supervisedSinceAt = (paths: StackPaths): string =>
  statSync(pathOf(paths), { throwIfNoEntry: false })?.mtime.toISOString() ?? '';

/** Removes the file of a dead supervisor. Puts it back if it turns out to be the new file of a living one. */
function removeStaleRecord(paths: StackPaths, aside: string): void {
  try {
    renameSync(pathOf(paths), aside);
    const [pid, mark = ''] = readFileSync(aside, 'utf8').split('\n');
    if (isAlive({ name: 'supervisor', pid: Number(pid), mark })) linkSync(aside, pathOf(paths));
  } catch (error) {
    // ENOENT: there was no file. EEXIST: another supervisor has just written one.
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Makes this process the supervisor, or returns the existing one. The file is linked complete, so only one process wins. */
export function claimSupervision(paths: StackPaths): ProcessRecord | null {
  mkdirSync(paths.state, { recursive: true, mode: 0o700 });
  const draft = `${pathOf(paths)}.${process.pid}.new`;
  writeFileSync(draft, `${process.pid}\n${markOf(process.pid)}\n`, { mode: 0o600 });
  try {
    for (;;) {
      const other = findSupervisor(paths);
      if (other !== null) return other;
      removeStaleRecord(paths, `${draft}.old`);
      try {
        linkSync(draft, pathOf(paths));
        return null;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

export function releaseSupervision(paths: StackPaths): void {
  if (readRecord(paths)?.pid === process.pid) rmSync(pathOf(paths), { force: true });
}

/**
 * Stops the stack in any state, through its supervisor or by the records of its processes.
 * @returns a message; null when nothing ran
 */
export async function endStack(paths: StackPaths): Promise<string | null> {
  const supervisor = findSupervisor(paths);
  if (supervisor !== null) await endProcess(supervisor, SUPERVISOR_GRACE_MS);
  const orphans = await endOrphans(paths, (line) => console.error(line));
  removeStackFile(paths);
  rmSync(pathOf(paths), { force: true });
  if (orphans.length > 0) return `ended orphans of a dead supervisor: ${orphans.join(', ')}`;
  return supervisor === null ? null : 'stopped';
}
