import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { StackPaths } from './paths.ts';
import { readJsonFile, readOptionalFile, writePrivateFile } from './private-file.ts';
import { endProcess, isAlive, markOf, type ProcessRecord } from './process-mark.ts';
import { isService } from './services.ts';
import { readStackFile } from './stack-file.ts';

/** Content of `children.json`: the processes of an owner, recorded before they receive a request. */
interface ChildrenFile {
  owner: ProcessRecord;
  children: ProcessRecord[];
}

/** Maximum duration of a service's graceful shutdown. */
const ORPHAN_GRACE_MS = 25_000;

const pathOf = (paths: StackPaths) => join(paths.state, 'children.json');

/** Opens `children.json` and updates the file whenever a child process starts or ends. */
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

/** Returns the running processes of a dead supervisor, oldest first. */
export const findOrphans = (paths: StackPaths): ProcessRecord[] => toOrphans(readRecord(paths));

/** Reads the file without changing it. @returns null if missing or unreadable; startup reports an unreadable file */
function readRecord(paths: StackPaths): ChildrenFile | null {
  try {
    return readJsonFile(pathOf(paths)) as ChildrenFile | null;
  } catch {
    return null;
  }
}

const toOrphans = (file: ChildrenFile | null): ProcessRecord[] =>
  file === null || isAlive(file.owner) ? [] : file.children.filter(isAlive);

/** Lists running processes in the stack file. It has no marks, so pids may have been reused; the user must decide. */
function listRemaining(paths: StackPaths): string {
  let recorded: [string, number][] = [];
  try {
    recorded = Object.entries(readStackFile(paths)?.processes ?? {});
  } catch {}
  const running = recorded.filter(([, pid]) => pid > 0 && markOf(pid) !== null);
  if (running.length === 0) return '';
  return `; processes of the last stack may still be running: ${running.map(([name, pid]) => `${name} (\`kill ${pid}\`)`).join(', ')}`;
}

/**
 * Stops the processes of a dead owner, services before stores.
 * @param report called if the record is unreadable; the record is then renamed, and no process is stopped
 * @returns the names of the stopped processes
 */
export async function endOrphans(paths: StackPaths, report: (line: string) => void = () => {}): Promise<string[]> {
  const reportUnreadable = (line: string) => report(line + listRemaining(paths));
  const file = readOptionalFile(pathOf(paths), reportUnreadable) as ChildrenFile | null;
  if (file === null || isAlive(file.owner)) return [];
  const orphans = toOrphans(file);
  const services = orphans.filter(({ name }) => isService(name));
  await Promise.all(services.map((record) => endProcess(record, ORPHAN_GRACE_MS)));
  await Promise.all(orphans.map((record) => endProcess(record, ORPHAN_GRACE_MS)));
  rmSync(pathOf(paths), { force: true });
  return orphans.map((record) => record.name);
}

/** Stops and removes the stacks of killed test runs below the folder `parent`. */
export async function sweepStacks(pathsOfFolder: (folder: string) => StackPaths, parent: string): Promise<void> {
  let folders: string[];
  try {
    folders = readdirSync(parent, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return; // no test run yet
  }
  for (const folder of folders) {
    const paths = pathsOfFolder(join(parent, folder));
    const file = readRecord(paths);
    // Without a record, no process is running in the folder: the stack is starting or was stopped.
    if (file === null || isAlive(file.owner)) continue;
    await endOrphans(paths);
    rmSync(paths.state, { recursive: true, force: true });
  }
}
