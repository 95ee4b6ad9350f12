import { host } from './host.ts';
import { EVENT_AGE_MAX_MS, MESSAGE_BYTES_MAX } from './message.ts';

/**
 * Persists unsent messages and ids across pages, with one entry per message, so that tabs do not overwrite each other.
 * Synchronous, because a closing page does not wait. If a method throws, the client continues in memory.
 */
export interface AudienceStore {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
  keys(): string[];
}

export function createMemoryStore(): AudienceStore {
  const entries = new Map<string, string>();
  return {
    get: (key) => entries.get(key) ?? null,
    set: (key, value) => void entries.set(key, value),
    remove: (key) => void entries.delete(key),
    keys: () => [...entries.keys()],
  };
}

/** Returns a store that uses `localStorage`, or a memory store if `localStorage` is missing or blocked. */
export function createBrowserStore(): AudienceStore {
  try {
    // Used only on pages. In other runtimes, `localStorage` logs a warning or is shared by the whole process.
    const storage = host.document && host.localStorage;
    if (storage)
      return {
        get: (key) => storage.getItem(key),
        set: (key, value) => storage.setItem(key, value),
        remove: (key) => storage.removeItem(key),
        keys: () => Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? ''),
      };
  } catch {
    // If storage is blocked, reading the property throws.
  }
  return createMemoryStore();
}

/** Returns a fallback if `action` throws, so that store exceptions never reach the game. */
export function attempt<T>(action: () => T, fallback: T): T {
  try {
    return action();
  } catch {
    return fallback;
  }
}

export type MessageStorage = ReturnType<typeof createMessageStorage>;

/**
 * Reads and writes messages in the store without throwing.
 * @param prefix key prefix, which differs per publishable key
 */
export function createMessageStorage(store: AudienceStore, prefix: string) {
  const remove = (key: string) => attempt(() => store.remove(key), undefined);
  const isValid = (text: string | null): text is string =>
    // The service would reject a whole batch for a single message with invalid JSON.
    text !== null && text.length <= MESSAGE_BYTES_MAX && attempt(() => JSON.parse(text), null) !== null;
  return {
    /** Returns false if the store fails. */
    put: (key: string, text: string) =>
      attempt(() => {
        store.set(key, text);
        return true;
      }, false),
    /** Returns null if the entry was removed, and `fallback` if the store fails. */
    read: (key: string, fallback: string) => attempt<string | null>(() => store.get(key), fallback),
    remove,
    /** Lists the stored messages, oldest first. */
    list() {
      // Uses the wall clock, because messages outlive the page.
      const listedAt = Date.now();
      const oldest = prefix + toStamp(listedAt - EVENT_AGE_MAX_MS);
      const keys = attempt(() => store.keys(), []).filter((key) => key.startsWith(prefix));
      return keys.sort().flatMap((key) => {
        const text = attempt(() => store.get(key), null);
        if (isValid(text)) return [{ key, text, isExpired: key < oldest }];
        remove(key);
        return [];
      });
    },
    /** Returns a key that sorts by time and then by `order`. */
    keyOf: (id: string, order: number) =>
      `${prefix}${toStamp(Date.now())}-${order.toString(36).padStart(6, '0')}-${id}`,
    idOf: (key: string) => key.slice(prefix.length).replace(/^\w+-\w+-/, ''),
  };
}

/** Formats a time so that it sorts lexicographically until the year 5188. */
function toStamp(timeMs: number): string {
  return timeMs.toString(36).padStart(9, '0');
}
