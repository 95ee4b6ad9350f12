// Files with secrets, and JSON files of a stack.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Replaces a file atomically, with mode 0600. Creates its folder with mode 0700. */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path);
}

/** The JSON value of a file, or null without one. @throws Error with `fix` when it is unreadable */
export function readJsonFile(path: string, fix = 'restore a copy, or remove all data with `npm run reset`'): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}; ${fix}`);
  }
}

/** Like `readJsonFile`, but moves an unreadable file aside, reports that, and returns null. */
export function readOptionalFile(path: string, report: (line: string) => void): unknown {
  try {
    return readJsonFile(path);
  } catch {
    renameSync(path, `${path}.unreadable`);
    report(`${basename(path)} was unreadable and is now ${basename(path)}.unreadable`);
    return null;
  }
}
