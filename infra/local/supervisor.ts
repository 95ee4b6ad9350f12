import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endOrphans } from './children.ts';
import type { StackPaths } from './paths.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { removeStackFile } from './stack-file.ts';

/** Services drain up to 26 s and stores stop within 30 s. The rest is reserve. */
const SUPERVISOR_GRACE_MS = 60_000;

const pathOf = (places: StackPaths) => join(places.state, 'supervisor.pid');

/** `supervisor.pid`: the process id on the first line, for people and scripts; the mark on the second. */
function readRecord(places: StackPaths): ProcessRecord | null {
  try {
    const [pid, mark = ''] = readFileSync(pathOf(places), 'utf8').split('\n');
    return { name: 'supervisor', pid: Number(pid), mark };
  } catch {
    return null;
  }
}

/** The living supervisor of this checkout's stack, or null. Another process with the same id does not count. */
export function findSupervisor(places: StackPaths): ProcessRecord | null {
  const record = readRecord(places);
  return record !== null && isAlive(record) ? record : null;
}

/** When the supervisor of this checkout started (ISO 8601); '' when there is none. */
export function supervisedSinceAt(places: StackPaths): string {
  return statSync(pathOf(places), { throwIfNoEntry: false })?.mtime.toISOString() ?? '';
}

/** Removes the file of a dead supervisor. Puts it back if it turns out to be the new file of a living one. */
function removeStaleRecord(places: StackPaths, aside: string): void {
  try {
    renameSync(pathOf(places), aside);
    const [pid, mark = ''] = readFileSync(aside, 'utf8').split('\n');
    if (isAlive({ name: 'supervisor', pid: Number(pid), mark })) linkSync(aside, pathOf(places));
  } catch (error) {
    // ENOENT: there was no file. EEXIST: another supervisor has written one meanwhile.
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * Makes this process the supervisor, or returns the existing one. Of two attempts at the same time one succeeds,
 * because the file appears complete under its name or not at all.
 */
export function claimSupervision(places: StackPaths): ProcessRecord | null {
  mkdirSync(places.state, { recursive: true, mode: 0o700 });
  const draft = `${pathOf(places)}.${process.pid}.new`;
  writeFileSync(draft, `${process.pid}\n${markOf(process.pid)}\n`, { mode: 0o600 });
  try {
    for (;;) {
      const other = findSupervisor(places);
      if (other !== null) return other;
      removeStaleRecord(places, `${draft}.old`);
      try {
        linkSync(draft, pathOf(places));
        return null;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

export function releaseSupervision(places: StackPaths): void {
  if (readRecord(places)?.pid === process.pid) rmSync(pathOf(places), { force: true });
}

/**
 * Ends the stack in any state. A living supervisor drains and stops everything. Otherwise the processes of a killed one
 * are ended by their records.
 * @returns what was ended, in words; null when nothing ran
 */
export async function endStack(places: StackPaths): Promise<string | null> {
  const supervisor = findSupervisor(places);
  if (supervisor !== null) await endProcess(supervisor, SUPERVISOR_GRACE_MS);
  const orphans = await endOrphans(places, (line) => console.error(line));
  removeStackFile(places);
  rmSync(pathOf(places), { force: true });
  if (orphans.length > 0) return `ended what a dead supervisor had left: ${orphans.join(', ')}`;
  return supervisor === null ? null : 'stopped';
}
