// Log files of processes, and the messages in them.
import { closeSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** A larger log is renamed at the next start of its process. */
const LOG_BYTES_MAX = 10 * 1024 * 1024;
const TAIL_LINES = 15;
const TAIL_BYTES = 8 * 1024;

/** Opens a log for appending. A log that is too large is renamed to `<name>.1` first. */
export function openLog(path: string): number {
  mkdirSync(dirname(path), { recursive: true });
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

const MESSAGE_CHARACTERS_MAX = 200;
/** Some hundred lines. */
const ERROR_BYTES = 64 * 1024;

/** The error in a line of a service's log (JSON with a level and an ISO time); null for any other line. */
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

/** The last error in a service's log since an instant (ISO 8601); null without one. */
export function lastErrorOf(path: string, sinceAt: string): { at: string; what: string } | null {
  const lines = endOf(path, { from: 0, bytesMax: ERROR_BYTES }).split('\n');
  const found = lines.map(parseErrorLine).findLast((error) => error !== null) ?? null;
  return found !== null && found.at >= sinceAt ? found : null;
}

/** Lines below an error in Java and Node: stack frames, omitted frames, and the version of Node. */
const BELOW_FAULT = /^\s*(at \S.*|\.\.\. \d+ .*|Node\.js v\S+)?$/;
const NO_SPACE = /No space left on device|ENOSPC/i;

/** The last line from byte `from` that is not part of a stack trace; a full disk takes precedence, as the cause of later lines. */
export function lastMessageOf(path: string, from = 0): string {
  const lines = endOf(path, { from, bytesMax: ERROR_BYTES }).split('\n');
  const messages = lines.filter((each) => !BELOW_FAULT.test(each)).slice(-TAIL_LINES);
  if (messages.some((each) => NO_SPACE.test(each)))
    return 'its disk is full (no space left on device): free space; `npm run doctor` names the disk';
  const last = messages.at(-1);
  if (last === undefined) return 'it wrote nothing';
  return parseErrorLine(last)?.what ?? last.trim();
}

/** The last lines from byte `from`; '' without any. */
export const tailOf = (path: string, from = 0): string =>
  endOf(path, { from, bytesMax: TAIL_BYTES }).trimEnd().split('\n').slice(-TAIL_LINES).join('\n');

function endOf(path: string, { from, bytesMax }: { from: number; bytesMax: number }): string {
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
