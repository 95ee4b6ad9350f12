import { statSync } from 'node:fs';

/** A command that changed a key waits for the stack file to follow: often enough to seem at once, and next to no work. */
const POLL_MS = 250;

export interface FileWatch {
  close(): void;
}

/**
 * Calls back when a file was replaced, also for what was replaced before the first look. By its times and not by the
 * system's notices: those do not come on every file system.
 */
export function openFileWatch(path: string, onChange: () => void): FileWatch {
  let seen = '';
  const timer = setInterval(() => {
    const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
    const now = stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs}`;
    if (now === seen) return;
    seen = now;
    onChange();
  }, POLL_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
