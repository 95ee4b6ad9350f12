// Identifies processes across restarts, and ends them.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** A process that was seen alive. Its id alone may later belong to another process. */
export interface ProcessRecord {
  name: string;
  pid: number;
  /** Distinguishes this process from any other with the same id. */
  mark: string;
}

const LINUX_BOOT_ID = '/proc/sys/kernel/random/boot_id';
/** Fields of /proc/<pid>/stat after the name in parentheses. */
const STATE_FIELD = 0;
const START_TICKS_FIELD = 19;

function linuxMark(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // State Z: the process has ended and is not reaped yet.
  if (fields[STATE_FIELD] === 'Z' || fields[STATE_FIELD] === 'X') return null;
  return `${readFileSync(LINUX_BOOT_ID, 'utf8').trim()}/${fields[START_TICKS_FIELD]}`;
}

/** Boot id and start time of a living process, or null. */
export function markOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') return linuxMark(pid);
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

/** On every processor that Node supports. */
const TICKS_PER_SECOND = 100;

/** Age in seconds by the system's clock; null when unknown. */
export function ageOf(pid: number): number | null {
  try {
    if (process.platform !== 'linux') return null;
    const [, startTicks] = (linuxMark(pid) ?? '').split('/');
    if (startTicks === undefined) return null;
    const [upSeconds = ''] = readFileSync('/proc/uptime', 'utf8').split(' ');
    return Math.max(0, Number(upSeconds) - Number(startTicks) / TICKS_PER_SECOND);
  } catch {
    return null;
  }
}

export const isAlive = (record: ProcessRecord): boolean => markOf(record.pid) === record.mark;

const POLL_MS = 25;

async function isGoneWithin(record: ProcessRecord, graceMs: number): Promise<boolean> {
  const end = performance.now() + graceMs;
  while (isAlive(record)) {
    if (performance.now() > end) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** Ends a process that is not a child: SIGTERM (and SIGCONT, in case it is paused), then SIGKILL after the grace time. */
export async function endProcess(record: ProcessRecord, graceMs: number): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(record)) return;
    try {
      process.kill(record.pid, signal);
      process.kill(record.pid, 'SIGCONT');
    } catch {
      // It has just ended.
    }
    if (await isGoneWithin(record, graceMs)) return;
  }
  throw new Error(`${record.name} (process ${record.pid}) does not end`);
}
