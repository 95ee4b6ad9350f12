import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, readOptionalFile, writePrivateFile } from './private-file.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { SERVICES } from './services.ts';
import { readStackFile } from './stack-file.ts';

/** `children.json`: the processes of an owner, written before any of them gets a request. */
interface ChildrenFile {
  owner: ProcessRecord;
  children: ProcessRecord[];
}

/** The longest stop of a service. */
const ORPHAN_GRACE_MS = 25_000;

const pathOf = (paths: StackPaths) => join(paths.state, 'children.json');

/** Keeps `children.json` up to date with the processes that this process owns. */
export function openChildrenFile(paths: StackPaths): { set(name: string, pid: number | null): void; close(): void } {
  const owner = { name: 'owner', pid: process.pid, mark: markOf(process.pid) ?? '' };
  const children = new Map<string, ProcessRecord>();
  return {
    set(name, pid) {
      const mark = pid === null ? null : markOf(pid);
      if (pid === null || mark === null) children.delete(name);
      else children.set(name, { name, pid, mark });
      const file: ChildrenFile = { owner, children: [...children.values()] };
      writePrivateFile(pathOf(paths), `${JSON.stringify(file, null, 2)}\n`);
    },
    close() {
      rmSync(pathOf(paths), { force: true });
    },
  };
}

/** Processes of a dead supervisor that still run, oldest first. */
export const findOrphans = (paths: StackPaths): ProcessRecord[] => orphansIn(peek(paths));

/** Reads the record without changing it. Null also when it is unreadable; a start reports and repairs that. */
function peek(paths: StackPaths): ChildrenFile | null {
  try {
    return readJsonFile(pathOf(paths)) as ChildrenFile | null;
  } catch {
    return null;
  }
}

const orphansIn = (file: ChildrenFile | null): ProcessRecord[] =>
  file === null || isAlive(file.owner) ? [] : file.children.filter(isAlive);

/** Names processes of the stack file. Without marks an id may belong to another process, so a person must decide. */
function survivorsOf(paths: StackPaths): string {
  let recorded: [string, number][] = [];
  try {
    recorded = Object.entries(readStackFile(paths)?.processes ?? {});
  } catch {}
  const living = recorded.filter(([, pid]) => pid > 0 && markOf(pid) !== null);
  if (living.length === 0) return '';
  return `; processes of the last stack may still run: ${living.map(([name, pid]) => `${name} (\`kill ${pid}\`)`).join(', ')}`;
}

/**
 * Ends the processes of a dead owner, services before stores.
 * @param report called when the record is unreadable: it is moved aside, and nothing is ended
 * @returns the names of the ended processes
 */
export async function endOrphans(paths: StackPaths, report: (line: string) => void = () => {}): Promise<string[]> {
  const aside = (line: string) => report(line + survivorsOf(paths));
  const file = readOptionalFile(pathOf(paths), aside) as ChildrenFile | null;
  if (file === null || isAlive(file.owner)) return [];
  const orphans = orphansIn(file);
  const isService = (record: ProcessRecord) => SERVICES.some((service) => service.name === record.name);
  await Promise.all(orphans.filter(isService).map((record) => endProcess(record, ORPHAN_GRACE_MS)));
  await Promise.all(orphans.map((record) => endProcess(record, ORPHAN_GRACE_MS)));
  rmSync(pathOf(paths), { force: true });
  return orphans.map((record) => record.name);
}

/** Ends and removes the stacks of killed test runs in the folders under `parent`. */
export async function sweepStacks(pathsOfFolder: (folder: string) => StackPaths, parent: string): Promise<void> {
  let folders: string[];
  try {
    folders = readdirSync(parent, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return; // no run yet
  }
  for (const folder of folders) {
    const paths = pathsOfFolder(join(parent, folder));
    const file = peek(paths);
    // Without a record nothing runs there: the stack is starting or was stopped.
    if (file === null || isAlive(file.owner)) continue;
    await endOrphans(paths);
    rmSync(paths.state, { recursive: true, force: true });
  }
}
