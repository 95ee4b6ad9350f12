import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, readOptionalFile, writePrivateFile } from './private-file.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { SERVICES } from './services.ts';
import { readStackFile } from './stack-file.ts';

/** The processes that a stack's owner has started. Written before any of them gets a request. */
interface ChildrenFile {
  owner: ProcessRecord;
  children: ProcessRecord[];
}

/** As long as the longest drain of a service. A store that takes longer has nothing left to save. */
const ORPHAN_GRACE_MS = 25_000;

const pathOf = (places: StackPaths) => join(places.state, 'children.json');

/** Keeps `children.json` up to date with the processes that this process owns. */
export function openChildrenFile(places: StackPaths): { set(name: string, pid: number | null): void; close(): void } {
  const owner = { name: 'owner', pid: process.pid, mark: markOf(process.pid) ?? '' };
  const children = new Map<string, ProcessRecord>();
  return {
    set(name, pid) {
      const mark = pid === null ? null : markOf(pid);
      if (pid === null || mark === null) children.delete(name);
      else children.set(name, { name, pid, mark });
      const file: ChildrenFile = { owner, children: [...children.values()] };
      writePrivateFile(pathOf(places), `${JSON.stringify(file, null, 2)}\n`);
    },
    close() {
      rmSync(pathOf(places), { force: true });
    },
  };
}

/** Processes that still run although their supervisor is dead, oldest first. None while the supervisor lives. */
export function findOrphans(places: StackPaths): ProcessRecord[] {
  return orphansIn(peekAt(places));
}

/** Reads the record without changing it. Null also when it cannot be read; a start reports and repairs that. */
function peekAt(places: StackPaths): ChildrenFile | null {
  try {
    return readJsonFile(pathOf(places)) as ChildrenFile | null;
  } catch {
    return null;
  }
}

const orphansIn = (file: ChildrenFile | null): ProcessRecord[] =>
  file === null || isAlive(file.owner) ? [] : file.children.filter(isAlive);

function peekAtProcesses(places: StackPaths): Record<string, number> {
  try {
    return readStackFile(places)?.processes ?? {};
  } catch {
    return {};
  }
}

/** Process ids from the stack file. Without marks they may belong to other processes, so a person must decide. */
function survivorsOf(places: StackPaths): string {
  const recorded = Object.entries(peekAtProcesses(places));
  const living = recorded.filter(([, pid]) => pid > 0 && markOf(pid) !== null);
  if (living.length === 0) return '';
  return `; of the last stack these may still run: ${living.map(([name, pid]) => `${name} (\`kill ${pid}\`)`).join(', ')}`;
}

/**
 * Ends processes that a dead owner left running, services before stores. Does nothing while the owner lives, and never
 * touches another process with the same id.
 * @param say called when the record cannot be read. It is then moved aside, and nothing is ended
 * @returns the names of the ended processes
 */
export async function endOrphans(places: StackPaths, say: (line: string) => void = () => {}): Promise<string[]> {
  const aside = (line: string) => say(line + survivorsOf(places));
  const file = readOptionalFile(pathOf(places), aside) as ChildrenFile | null;
  if (file === null || isAlive(file.owner)) return [];
  const orphans = orphansIn(file);
  const isService = (record: ProcessRecord) => SERVICES.some((service) => service.name === record.name);
  await Promise.all(orphans.filter(isService).map((record) => endProcess(record, ORPHAN_GRACE_MS)));
  await Promise.all(orphans.map((record) => endProcess(record, ORPHAN_GRACE_MS)));
  rmSync(pathOf(places), { force: true });
  return orphans.map((record) => record.name);
}

/** Ends and removes what killed earlier runs have left in the folders under `parent`. */
export async function sweepStacks(placesOfFolder: (folder: string) => StackPaths, parent: string): Promise<void> {
  let folders: string[];
  try {
    folders = readdirSync(parent, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return; // no run yet
  }
  for (const folder of folders) {
    const places = placesOfFolder(join(parent, folder));
    const file = peekAt(places);
    // Without a record the stack is just starting or has been stopped, so nothing runs there.
    if (file === null || isAlive(file.owner)) continue;
    await endOrphans(places);
    rmSync(places.state, { recursive: true, force: true });
  }
}
