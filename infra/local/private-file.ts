// Reads and writes private files and JSON files of a stack.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Replaces a file atomically with mode 0600, and creates its folder with mode 0700. */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporaryPath = `${path}.${process.pid}.new`;
  writeFileSync(temporaryPath, text, { mode: 0o600 });
  renameSync(temporaryPath, path);
}

/** @returns the JSON value of a file, or null if the file is missing @throws Error with `fix` if it is unreadable */
export function readJsonFile(path: string, fix = 'restore a copy, or delete all data with `npm run reset`'): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}; ${fix}`);
  }
}

/** Reads a JSON file like `readJsonFile`, but renames and reports an unreadable file and returns null. */
export function readOptionalFile(path: string, report: (line: string) => void): unknown {
  try {
    return readJsonFile(path);
  } catch {
    renameSync(path, `${path}.unreadable`);
    report(`${basename(path)} was unreadable and was renamed to ${basename(path)}.unreadable`);
    return null;
  }
}
