import { readFileSync, writeFileSync } from 'node:fs';

/** Of the main thread, which starts all processes (`man 5 proc_pid_timerslack_ns`). */
const FILE = '/proc/self/timerslack_ns';
const NS_PER_MS = 1_000_000;

/**
 * Starts a process whose timers may fire so much late. The system then lets several fire at one wake-up of a processor. A
 * process has the slack of the thread that starts it, and gives it to its own threads and children. So the main thread,
 * which must be the caller's, has it for a moment. On a system without the setting the process is started as usual.
 * @param slackMs undefined: as the system has it
 */
export function withTimerSlack<T>(slackMs: number | undefined, start: () => T): T {
  const usual = slackMs === undefined ? null : changeSlack(slackMs * NS_PER_MS);
  try {
    return start();
  } finally {
    if (usual !== null) changeSlack(usual);
  }
}

/** @returns what it was before, in ns; null where the system has no such setting, as outside of Linux, or does not allow it */
function changeSlack(ns: number): number | null {
  try {
    const usual = Number(readFileSync(FILE, 'utf8'));
    writeFileSync(FILE, String(ns));
    return usual;
  } catch {
    return null;
  }
}
