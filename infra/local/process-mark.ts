// Identifies processes across restarts, and stops them.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Identifies a process. The pid alone is not sufficient, because the system may reuse it. */
export interface ProcessRecord {
  name: string;
  pid: number;
  /** Distinguishes this process from other processes with the same pid. */
  mark: string;
}

const LINUX_BOOT_ID = '/proc/sys/kernel/random/boot_id';
/** Fields of /proc/<pid>/stat after the name in parentheses. */
const STATE_FIELD = 0;
const START_TICKS_FIELD = 19;

function linuxMark(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // State Z: the process has exited but was not reaped yet.
  if (fields[STATE_FIELD] === 'Z' || fields[STATE_FIELD] === 'X') return null;
  return `${readFileSync(LINUX_BOOT_ID, 'utf8').trim()}/${fields[START_TICKS_FIELD]}`;
}

/** @returns the boot id and start time of a running process, or null */
export function markOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') return linuxMark(pid);
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

/** The clock ticks per second, 100 on all architectures that Node supports. */
const TICKS_PER_SECOND = 100;

/** @returns the age of a process in seconds, or null if unknown */
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

async function exitsWithin(record: ProcessRecord, graceMs: number): Promise<boolean> {
  const end = performance.now() + graceMs;
  while (isAlive(record)) {
    if (performance.now() > end) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** Stops a process: SIGTERM (and SIGCONT, in case it is paused), then SIGKILL after the grace period. */
export async function endProcess(record: ProcessRecord, graceMs: number): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isAlive(record)) return;
    try {
      process.kill(record.pid, signal);
      process.kill(record.pid, 'SIGCONT');
    } catch {
      // The process has just exited.
    }
    if (await exitsWithin(record, graceMs)) return;
  }
  throw new Error(`${record.name} (process ${record.pid}) did not exit after SIGKILL`);
}
