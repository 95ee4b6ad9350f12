import { host } from './host.ts';
import { EVENT_AGE_MAX_MS, MESSAGE_BYTES_MAX } from './message.ts';

/**
 * Keeps unsent messages and ids beyond the page. One entry per message, so that tabs do not overwrite each other.
 * Synchronous, because a closing page does not wait. Methods may throw: the client then continues in memory.
 */
export interface AudienceStore {
  get(key: string): string | null;
  set(key: string, value: string): void;
  remove(key: string): void;
  keys(): string[];
}

/** A store in memory. */
export function createMemoryStore(): AudienceStore {
  const entries = new Map<string, string>();
  return {
    get: (key) => entries.get(key) ?? null,
    set: (key, value) => void entries.set(key, value),
    remove: (key) => void entries.delete(key),
    keys: () => [...entries.keys()],
  };
}

/** `localStorage` of a page, or a memory store where it is missing or blocked. */
export function createBrowserStore(): AudienceStore {
  try {
    // Only on a page: in other runtimes `localStorage` is one file for the whole process, or warns.
    const storage = host.document && host.localStorage;
    if (storage)
      return {
        get: (key) => storage.getItem(key),
        set: (key, value) => storage.setItem(key, value),
        remove: (key) => storage.removeItem(key),
        keys: () => Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? ''),
      };
  } catch {
    // Blocked storage throws when the property is read.
  }
  return createMemoryStore();
}

/** Exceptions of a store must not reach the game. */
export function attempt<T>(action: () => T, otherwise: T): T {
  try {
    return action();
  } catch {
    return otherwise;
  }
}

export type MessageStorage = ReturnType<typeof createMessageStorage>;

/**
 * Messages in the store. No method throws.
 * @param prefix of every key; messages of another publishable key have another prefix
 */
export function createMessageStorage(store: AudienceStore, prefix: string) {
  const remove = (key: string) => attempt(() => store.remove(key), undefined);
  const isSound = (text: string | null): text is string =>
    // Invalid JSON would make the service refuse the whole batch.
    text !== null && text.length <= MESSAGE_BYTES_MAX && attempt(() => JSON.parse(text), null) !== null;
  return {
    /** False when the store failed. */
    put: (key: string, text: string) =>
      attempt(() => {
        store.set(key, text);
        return true;
      }, false),
    /** Null when the store has it no longer; `otherwise` when it cannot be read. */
    read: (key: string, otherwise: string) => attempt<string | null>(() => store.get(key), otherwise),
    remove,
    /** Oldest first. */
    list() {
      // By the wall clock, because messages outlive the page.
      const listedAt = Date.now();
      const oldest = prefix + toStamp(listedAt - EVENT_AGE_MAX_MS);
      const keys = attempt(() => store.keys(), []).filter((key) => key.startsWith(prefix));
      return keys.sort().flatMap((key) => {
        const text = attempt(() => store.get(key), null);
        if (isSound(text)) return [{ key, text, expired: key < oldest }];
        remove(key);
        return [];
      });
    },
    /** A key that sorts by time, then by `order`. */
    keyOf: (id: string, order: number) =>
      `${prefix}${toStamp(Date.now())}-${order.toString(36).padStart(6, '0')}-${id}`,
    idOf: (key: string) => key.slice(prefix.length).replace(/^\w+-\w+-/, ''),
  };
}

/** Sorts as text until the year 5188. */
function toStamp(timeMs: number): string {
  return timeMs.toString(36).padStart(9, '0');
}
