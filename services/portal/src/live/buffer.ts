import type { LiveEntry } from './entry.ts';
import type { LiveLimits } from './limits.ts';

/** The latest entries of all environments with subscribers, in memory. */
export interface LiveBuffer {
  readonly bytes: number;
  readonly size: number;
  add(entry: LiveEntry): void;
  find(position: string): LiveEntry | undefined;
  /** Oldest first. */
  entries(): IterableIterator<LiveEntry>;
  /** Removes the entries of an environment. */
  clear(environmentId: string): void;
}

export function createBuffer(limits: Pick<LiveLimits, 'bufferEntriesMax' | 'bufferBytesMax'>): LiveBuffer {
  const entries = new Map<string, LiveEntry>();
  let bytes = 0;
  const drop = (entry: LiveEntry) => {
    entries.delete(entry.position);
    bytes -= entry.bytes;
  };
  return {
    get bytes() {
      return bytes;
    },
    get size() {
      return entries.size;
    },
    add(entry) {
      const stored = entries.get(entry.position);
      if (stored !== undefined) drop(stored);
      entries.set(entry.position, entry);
      bytes += entry.bytes;
      for (const oldest of entries.values()) {
        if (entries.size <= limits.bufferEntriesMax && bytes <= limits.bufferBytesMax) return;
        drop(oldest);
      }
    },
    find: (position) => entries.get(position),
    entries: () => entries.values(),
    clear(environmentId) {
      for (const entry of entries.values()) if (entry.environmentId === environmentId) drop(entry);
    },
  };
}
