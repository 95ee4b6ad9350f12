import { host } from './host.ts';
import { EVENT_AGE_MAX_MS, MESSAGE_BYTES_MAX } from './message.ts';

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

/** Exceptions of a store must not reach the game. The client then goes on in memory. */
export function attempt<T>(action: () => T, otherwise: T): T {
  try {
    return action();
  } catch {
    return otherwise;
  }
}

/** Messages in the store, one entry each. No method throws. */
export interface MessageStorage {
  /** False when the store refused it. */
  put(key: string, text: string): boolean;
  /** Null when the store no longer has it; `otherwise` when the store cannot be read. */
  read(key: string, otherwise: string): string | null;
  remove(key: string): void;
  /** All messages in the store, the oldest first. */
  list(): { key: string; text: string; expired: boolean }[];
  /** A key that sorts by time, then by `order`. */
  keyOf(id: string, order: number): string;
  idOf(key: string): string;
}

/**
 *
 * @param prefix start of every key: messages of another publishable key are not ours to send
 */
export function createMessageStorage(store: AudienceStore, prefix: string): MessageStorage {
  const remove = (key: string) => attempt(() => store.remove(key), undefined);
  const isSound = (text: string | null): text is string =>
    // Text that is no JSON would make the service refuse the whole batch, and text that is too large would never be
    // sent.
    text !== null && text.length <= MESSAGE_BYTES_MAX && attempt(() => JSON.parse(text), null) !== null;
  return {
    put: (key, text) =>
      attempt(() => {
        store.set(key, text);
        return true;
      }, false),
    read: (key, otherwise) => attempt(() => store.get(key), otherwise),
    remove,
    list() {
      // By the wall clock: messages outlive the page, and a monotonic clock starts again with each page.
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
    keyOf: (id, order) => `${prefix}${toStamp(Date.now())}-${order.toString(36).padStart(6, '0')}-${id}`,
    idOf: (key) => key.slice(prefix.length).replace(/^\w+-\w+-/, ''),
  };
}

/** Milliseconds as text that sorts by time until the year 5188. */
function toStamp(timeMs: number): string {
  return timeMs.toString(36).padStart(9, '0');
}
