// Reads and rotates the log files of processes.
import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** A larger log is renamed when its process starts. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const TAIL_LINES = 15;
const TAIL_BYTES = 8 * 1024;

/** Opens a log for appending. Renames an oversized log to `<name>.1` first. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

const MESSAGE_CHARACTERS_MAX = 200;
/** A few hundred lines. */
const ERROR_BYTES = 64 * 1024;

/** Parses an error in a service's log (JSON with a level and an ISO time). @returns null for other lines */
function parseErrorLine(line: string): { at: string; what: string } | null {
  try {
    const { level, time, msg, error } = JSON.parse(line);
    if (level !== 'error' && level !== 'fatal') return null;
    return {
      at: String(time),
      what: [msg, error?.message].filter(Boolean).join(': ').slice(0, MESSAGE_CHARACTERS_MAX),
    };
  } catch {
    return null;
  }
}

/** @returns the last error in a service's log since a time (ISO 8601), or null */
export function lastErrorOf(path: string, sinceAt: string): { at: string; what: string } | null {
  const lines = readTail(path, { from: 0, bytesMax: ERROR_BYTES }).split('\n');
  const found = lines.map(parseErrorLine).findLast((error) => error !== null) ?? null;
  return found !== null && found.at >= sinceAt ? found : null;
}

/** Matches lines below an error in Java and Node: stack frames, omitted frames, and the Node version. */
const BELOW_ERROR = /^\s*(at \S.*|\.\.\. \d+ .*|Node\.js v\S+)?$/;
const NO_SPACE = /No space left on device|ENOSPC/i;

/** @returns the last line after byte `from` outside a stack trace, or a message if the disk is full */
export function lastMessageOf(path: string, from = 0): string {
  const lines = readTail(path, { from, bytesMax: ERROR_BYTES }).split('\n');
  const messages = lines.filter((each) => !BELOW_ERROR.test(each)).slice(-TAIL_LINES);
  if (messages.some((each) => NO_SPACE.test(each)))
    return 'the disk is full (no space left on device). Free disk space; `npm run doctor` names the disk';
  const last = messages.at(-1);
  if (last === undefined) return 'the log is empty';
  return parseErrorLine(last)?.what ?? last.trim();
}

/** @returns the last lines after byte `from`, or '' */
export const tailOf = (path: string, from = 0): string =>
  readTail(path, { from, bytesMax: TAIL_BYTES }).trimEnd().split('\n').slice(-TAIL_LINES).join('\n');

function readTail(path: string, { from, bytesMax }: { from: number; bytesMax: number }): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const size = fstatSync(file).size;
    const start = Math.max(from, size - bytesMax);
    const bytes = Buffer.alloc(Math.max(0, size - start));
    readSync(file, bytes, 0, bytes.length, start);
    return bytes.toString('utf8');
  } finally {
    closeSync(file);
  }
}
