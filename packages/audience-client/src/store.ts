import { host } from './host.ts';

/**
 * Keeps unsent messages and the anonymous id beyond the page or the process. Each message is one entry, so that tabs
 * which share a store never overwrite each other's. Its methods are synchronous, because a page that is closing waits
 * for nothing. They may throw (quota, blocked storage): the client then goes on in memory.
 */
export interface AudienceStore {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
  keys(): string[];
}

/** A store in memory, which is lost when the process ends. */
export function createMemoryStore(): AudienceStore {
  const entries = new Map<string, string>();
  return {
    get: (key) => entries.get(key) ?? null,
    set: (key, value) => void entries.set(key, value),
    remove: (key) => void entries.delete(key),
    keys: () => [...entries.keys()],
  };
}

/** `localStorage` of a page, or a memory store where that is missing or blocked. */
export function createBrowserStore(): AudienceStore {
  try {
    // Only on a page: other runtimes have a `localStorage` too, which is one file for the whole process or only prints
    // a warning.
    const storage = host.document && host.localStorage;
    if (storage)
      return {
        get: (key) => storage.getItem(key),
        set: (key, value) => storage.setItem(key, value),
        remove: (key) => storage.removeItem(key),
        keys: () => Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? ''),
      };
  } catch {
    // Where the user has blocked storage, reading the property already throws.
  }
  return createMemoryStore();
}
