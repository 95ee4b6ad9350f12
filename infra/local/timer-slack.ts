import { readFileSync, writeFileSync } from 'node:fs';

/** Of the thread that opens it (`man 5 proc_pid_timerslack_ns`). */
const FILE = '/proc/self/timerslack_ns';
const NS_PER_MS = 1_000_000;

/**
 * Starts a process whose timers may fire so much late. The system then lets several fire at one wake-up of a processor. A
 * process has the slack of the thread that starts it, and gives it to its own threads and children, so this thread has it
 * for a moment. On a system without the setting the process is started as usual.
 * @param slackMs undefined: as the system has it
 */
export function withTimerSlack<T>(slackMs: number | undefined, start: () => T): T {
  const usual = slackMs === undefined ? null : changeSlack(slackMs * NS_PER_MS);
  try {
    return start();
  } finally {
    if (usual !== null) writeFileSync(FILE, usual);
  }
}

/** @returns what it was before; null where the system has no such setting, as outside of Linux, or does not allow it */
function changeSlack(ns: number): string | null {
  try {
    const usual = readFileSync(FILE, 'utf8').trim();
    writeFileSync(FILE, String(ns));
    return usual;
  } catch {
    return null;
  }
}
