import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/**
 * Replaces a file as a whole: a reader sees the old or the new text, never a part. Mode 0600, because these files
 * contain secrets.
 * @param path its folder is created when absent, with mode 0700
 */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path);
}

/**
 * The JSON value of a file, or null when there is no such file.
 * @param mend what the error advises. Files that are created again automatically need milder advice than the default
 * @throws Error naming the file and what to do, when it cannot be read
 */
export function readJsonFile(path: string, mend = 'put a copy back, or begin anew with `npm run reset`'): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${path} cannot be read: ${(error as Error).message}; ${mend}`);
  }
}

/**
 * Like `readJsonFile`, for a file that is not essential: when it cannot be read, it is moved aside and counts as
 * absent.
 * @param say called with one sentence about that
 */
export function readOptionalFile(path: string, say: (line: string) => void): unknown {
  try {
    return readJsonFile(path);
  } catch {
    renameSync(path, `${path}.unreadable`);
    say(`${basename(path)} could not be read and was set aside as ${basename(path)}.unreadable`);
    return null;
  }
}
