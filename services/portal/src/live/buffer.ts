import type { LiveEntry } from './entry.ts';
import type { LiveLimits } from './limits.ts';

/** The last entries of all environments that somebody looks at, in the memory of this process alone. */
export interface LiveBuffer {
  readonly bytes: number;
  readonly size: number;
  add(entry: LiveEntry): void;
  find(place: string): LiveEntry | undefined;
  /** The oldest first. */
  entries(): IterableIterator<LiveEntry>;
  /** Forgets those of an environment, or all. */
  clear(environmentId?: string): void;
}

export function createBuffer(limits: Pick<LiveLimits, 'bufferEntriesMax' | 'bufferBytesMax'>): LiveBuffer {
  const entries = new Map<string, LiveEntry>();
  let bytes = 0;
  const drop = (entry: LiveEntry) => {
    entries.delete(entry.place);
    bytes -= entry.bytes;
  };
  const dropOldest = () => {
    for (const entry of entries.values()) {
      if (entries.size <= limits.bufferEntriesMax && bytes <= limits.bufferBytesMax) return;
      drop(entry);
    }
  };
  return {
    get bytes() {
      return bytes;
    },
    get size() {
      return entries.size;
    },
    add(entry) {
      const standing = entries.get(entry.place);
      if (standing !== undefined) drop(standing);
      entries.set(entry.place, entry);
      bytes += entry.bytes;
      dropOldest();
    },
    find: (place) => entries.get(place),
    entries: () => entries.values(),
    clear(environmentId) {
      for (const entry of entries.values())
        if (environmentId === undefined || entry.environmentId === environmentId) drop(entry);
    },
  };
}
