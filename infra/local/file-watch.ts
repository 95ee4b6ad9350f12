import { statSync } from 'node:fs';

/**
 * A command that changed a key waits until the stack file has followed. Short enough to seem immediate, at almost no
 * cost.
 */
const POLL_MS = 250;

export interface FileWatch {
  close(): void;
}

/**
 * Calls back when a file was replaced, also when that happened before the first check. Compares file times, because
 * some file systems send no notifications.
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
