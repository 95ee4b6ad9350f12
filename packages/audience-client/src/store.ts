import { host } from './host.ts';

/**
 * Where unsent messages and the anonymous id outlive the page or the process: one entry a message, so that tabs that
 * share a store never write each other's. Synchronous, because a page that is being closed waits for nothing. A method
 * may throw (quota, blocked storage); the client then goes on in memory.
 */
export interface AudienceStore {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
  keys(): string[];
}

/** A store that ends with the process. */
export function createMemoryStore(): AudienceStore {
  const entries = new Map<string, string>();
  return {
    get: (key) => entries.get(key) ?? null,
    set: (key, value) => void entries.set(key, value),
    remove: (key) => void entries.delete(key),
    keys: () => [...entries.keys()],
  };
}

/** `localStorage` of a page; a memory store where there is none or it is blocked. */
export function createBrowserStore(): AudienceStore {
  try {
    // Other runtimes have a `localStorage` too, which is a file of the whole process or a warning.
    const storage = host.document && host.localStorage;
    if (storage)
      return {
        get: (key) => storage.getItem(key),
        set: (key, value) => storage.setItem(key, value),
        remove: (key) => storage.removeItem(key),
        keys: () => Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? ''),
      };
  } catch {
    // Reading the property alone throws where the user has blocked storage.
  }
  return createMemoryStore();
}
