import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';

/**
 * Replaces a file as a whole: a reader sees the old text or the new one, never a part. Mode 0600, since these hold
 * secrets.
 * @param path its folder is made when absent, with mode 0700
 */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path);
}

/**
 * The JSON value of a file, or null when there is no such file.
 * @param mend what the fault says to do; of files that are written anew by themselves, something milder than the usual
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
 * As `readJsonFile`, of a file that can be done without: one that cannot be read is set aside and counts as absent.
 * @param say called with one sentence about it
 */
export function readDispensableFile(path: string, say: (line: string) => void): unknown {
  try {
    return readJsonFile(path);
  } catch {
    renameSync(path, `${path}.unreadable`);
    say(`${basename(path)} could not be read and was set aside as ${basename(path)}.unreadable`);
    return null;
  }
}
