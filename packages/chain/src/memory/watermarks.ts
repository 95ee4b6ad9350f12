import type { Watermarks } from '../watermarks.ts';

/** Creates watermarks in memory, for tests. */
export function openMemoryWatermarks(): Watermarks {
  const standing = new Map<number, number>();
  return {
    publish: async (partition, us) => void standing.set(partition, Math.max(us, standing.get(partition) ?? 0)),
    read: async (partition) => standing.get(partition) ?? null,
    ready: async () => true,
    close: async () => {},
  };
}
