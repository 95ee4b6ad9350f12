import type { LiveEntry } from './entry.ts';
import type { LiveLimits } from './limits.ts';

export type LiveBuffer = ReturnType<typeof createBuffer>;

export function createBuffer(limits: Pick<LiveLimits, 'bufferEntriesMax' | 'bufferBytesMax'>) {
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
    add(entry: LiveEntry): void {
      const stored = entries.get(entry.position);
      if (stored !== undefined) drop(stored);
      entries.set(entry.position, entry);
      bytes += entry.bytes;
      for (const oldest of entries.values()) {
        if (entries.size <= limits.bufferEntriesMax && bytes <= limits.bufferBytesMax) return;
        drop(oldest);
      }
    },
    find: (position: string) => entries.get(position),
    entries: () => entries.values(),
    clear(environmentId: string): void {
      for (const entry of entries.values()) if (entry.environmentId === environmentId) drop(entry);
    },
  };
}
