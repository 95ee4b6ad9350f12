// The file `supervisor.pid`, which identifies the process that supervises the stack of a checkout.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endOrphans } from './children.ts';
import type { StackPaths } from './paths.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { removeStackFile } from './stack-file.ts';

/** Longer than services (26 s) and stores (30 s) take to stop. */
const SUPERVISOR_GRACE_MS = 60_000;

const pathOf = (paths: StackPaths) => join(paths.state, 'supervisor.pid');

/** Reads the pid in the first line and the mark in the second line. */
function readRecord(paths: StackPaths): ProcessRecord | null {
  try {
    const [pid, mark = ''] = readFileSync(pathOf(paths), 'utf8').split('\n');
    return { name: 'supervisor', pid: Number(pid), mark };
  } catch {
    return null;
  }
}

/** @returns the running supervisor, or null. Another process with the same pid is ignored. */
export function findSupervisor(paths: StackPaths): ProcessRecord | null {
  const record = readRecord(paths);
  return record !== null && isAlive(record) ? record : null;
}

/** @returns the start time of the supervisor (ISO 8601), or '' if there is none */
export const supervisorStartedAt = (paths: StackPaths): string =>
  statSync(pathOf(paths), { throwIfNoEntry: false })?.mtime.toISOString() ?? '';

/** Removes the file of a dead supervisor. Restores the file if a new supervisor has written it in the meantime. */
function removeStaleRecord(paths: StackPaths, temporaryPath: string): void {
  try {
    renameSync(pathOf(paths), temporaryPath);
    const [pid, mark = ''] = readFileSync(temporaryPath, 'utf8').split('\n');
    if (isAlive({ name: 'supervisor', pid: Number(pid), mark })) linkSync(temporaryPath, pathOf(paths));
  } catch (error) {
    // ENOENT: the file does not exist. EEXIST: another supervisor has just written the file.
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

/** Makes this process the supervisor, or returns the existing supervisor. Linking a complete file is atomic. */
export function claimSupervision(paths: StackPaths): ProcessRecord | null {
  mkdirSync(paths.state, { recursive: true, mode: 0o700 });
  const temporaryPath = `${pathOf(paths)}.${process.pid}.new`;
  writeFileSync(temporaryPath, `${process.pid}\n${markOf(process.pid)}\n`, { mode: 0o600 });
  try {
    for (;;) {
      const other = findSupervisor(paths);
      if (other !== null) return other;
      removeStaleRecord(paths, `${temporaryPath}.old`);
      try {
        linkSync(temporaryPath, pathOf(paths));
        return null;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

export function releaseSupervision(paths: StackPaths): void {
  if (readRecord(paths)?.pid === process.pid) rmSync(pathOf(paths), { force: true });
}

/**
 * Stops the stack in any state, through its supervisor or with the process records.
 * @returns a message, or null if nothing was running
 */
export async function endStack(paths: StackPaths): Promise<string | null> {
  const supervisor = findSupervisor(paths);
  if (supervisor !== null) await endProcess(supervisor, SUPERVISOR_GRACE_MS);
  const orphans = await endOrphans(paths, (line) => console.error(line));
  removeStackFile(paths);
  rmSync(pathOf(paths), { force: true });
  if (orphans.length > 0) return `stopped processes of a dead supervisor: ${orphans.join(', ')}`;
  return supervisor === null ? null : 'stopped';
}
