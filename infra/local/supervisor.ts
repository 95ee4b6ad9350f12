import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endOrphans } from './children.ts';
import type { Places } from './places.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { removeStackFile } from './stack-file.ts';

/** Services drain up to 26 s, stores stop within 30 s; then a little. */
const SUPERVISOR_GRACE_MS = 60_000;

const pathOf = (places: Places) => join(places.state, 'supervisor.pid');

/** `supervisor.pid`: the id on the first line, for people and scripts; its mark on the second. */
function readRecord(places: Places): ProcessRecord | null {
  try {
    const [pid, mark = ''] = readFileSync(pathOf(places), 'utf8').split('\n');
    return { name: 'supervisor', pid: Number(pid), mark };
  } catch {
    return null;
  }
}

/** The living supervisor of this checkout's stack, or null. Another process with the same id does not count. */
export function findSupervisor(places: Places): ProcessRecord | null {
  const record = readRecord(places);
  return record !== null && isAlive(record) ? record : null;
}

/** When the supervisor of this checkout began (ISO 8601); '' when there is none. */
export function supervisedSinceAt(places: Places): string {
  return statSync(pathOf(places), { throwIfNoEntry: false })?.mtime.toISOString() ?? '';
}

/** Takes a dead supervisor's file away, and puts it back when it turns out to be a living one's, written meanwhile. */
function removeStaleRecord(places: Places, aside: string): void {
  try {
    renameSync(pathOf(places), aside);
    const [pid, mark = ''] = readFileSync(aside, 'utf8').split('\n');
    if (isAlive({ name: 'supervisor', pid: Number(pid), mark })) linkSync(aside, pathOf(places));
  } catch (error) {
    // ENOENT: there was none. EEXIST: a third one has it by now.
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

/**
 * Makes this process the supervisor, or returns the one that already is. Of two that try at once, one succeeds: the
 * file appears under its name complete, or not at all.
 */
export function claimSupervision(places: Places): ProcessRecord | null {
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

export function releaseSupervision(places: Places): void {
  if (readRecord(places)?.pid === process.pid) rmSync(pathOf(places), { force: true });
}

/**
 * Ends the stack whoever runs it: its supervisor drains and stops everything; what a killed supervisor left is ended
 * by its records.
 * @returns what was ended, in words; null when nothing ran
 */
export async function endStack(places: Places): Promise<string | null> {
  const supervisor = findSupervisor(places);
  if (supervisor !== null) await endProcess(supervisor, SUPERVISOR_GRACE_MS);
  const orphans = await endOrphans(places, (line) => console.error(line));
  removeStackFile(places);
  rmSync(pathOf(places), { force: true });
  if (orphans.length > 0) return `ended what a dead supervisor had left: ${orphans.join(', ')}`;
  return supervisor === null ? null : 'stopped';
}
