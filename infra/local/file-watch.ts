import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';

/**
 * How often the file is checked without a notification: some file systems send none. A command that changed a key then
 * waits this long until the stack file has followed.
 */
const POLL_MS = 2_000;

export interface FileWatch {
  close(): void;
}

/**
 * Calls back when a file was replaced, also when that happened before the first check. Notifications of the folder only
 * say when to check: the file's times decide.
 */
export function openFileWatch(path: string, onChange: () => void): FileWatch {
  let seen = '';
  const check = () => {
    const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
    const now = stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs}`;
    if (now === seen) return;
    seen = now;
    onChange();
  };
  const notified = watchFolder(dirname(path), check);
  const timer = setInterval(check, POLL_MS).unref();
  // Not at once: the caller has no handle to close yet.
  const first = setImmediate(check).unref();
  return {
    close: () => {
      clearInterval(timer);
      clearImmediate(first);
      notified?.close();
    },
  };
}

/** Null where the system refuses, as when it has no watches left: the file is checked all the same. */
function watchFolder(folder: string, onEvent: () => void): FSWatcher | null {
  try {
    return watch(folder, { persistent: false }, onEvent).on('error', () => {});
  } catch {
    return null;
  }
}
