import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** A log larger than this is set aside at the next start of its process; one predecessor is kept. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;
/** Enough for a stack trace, little enough to read at a glance. */
const TAIL_LINES = 15;
const TAIL_BYTES = 8 * 1024;

/** Opens a log for appending and gives its file descriptor; a log that grew too large becomes `<name>.1` first. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

/** The last lines of a log that were written at or after byte `from`; '' when there are none. */
export function tailOf(path: string, from = 0): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const size = fstatSync(file).size;
    const start = Math.max(from, size - TAIL_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - start));
    readSync(file, bytes, 0, bytes.length, start);
    return bytes.toString('utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  } finally {
    closeSync(file);
  }
}
