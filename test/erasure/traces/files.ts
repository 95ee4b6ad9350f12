import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompressBlocks } from './compressed-blocks.ts';
import { findInBytes, type Needle, type Trace } from './needle.ts';

export interface FileSearch {
  /** @param path the path within the folder @returns the file's name in traces */
  readonly locationOf?: (path: string) => string;
  /** Whether to also search the decompressed content of ClickHouse files. */
  readonly decompress?: boolean;
}

/**
 * Searches every file below a folder, byte by byte. Freed disk blocks, copies of the disk and backups are not searched.
 */
export function findInFiles(folder: string, needles: readonly Needle[], search: FileSearch = {}): Trace[] {
  const { locationOf = (path) => path, decompress = false } = search;
  const counts = new Map<string, Trace>();
  for (const path of filesOf(folder)) {
    const bytes = orNullIfRemoved(() => withoutReserve(readFileSync(join(folder, path))));
    if (bytes === null) continue;
    const unpacked = decompress ? decompressBlocks(bytes) : null;
    const found = [
      ...findInBytes(locationOf(path), bytes, needles),
      ...(unpacked === null ? [] : findInBytes(locationOf(path), unpacked.bytes, needles)),
    ];
    for (const trace of found) {
      const name = `${trace.location} ${trace.needle}`;
      counts.set(name, { ...trace, count: (counts.get(name)?.count ?? 0) + trace.count });
    }
  }
  return [...counts.values()];
}

const ZEROS = Buffer.alloc(64 * 1024);

/** Kafka reserves 20 MB of zeros for each partition. A few zeros are kept, because a needle may end with zeros. */
function withoutReserve(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end >= ZEROS.length && bytes.subarray(end - ZEROS.length, end).equals(ZEROS)) end -= ZEROS.length;
  return bytes.subarray(0, end + 64);
}

/** Paths within a folder. Symbolic links are not followed, because their targets are searched where they are. */
function filesOf(folder: string, within = ''): string[] {
  const entries = orNullIfRemoved(() => readdirSync(join(folder, within), { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => {
    const path = join(within, entry.name);
    if (entry.isDirectory()) return filesOf(folder, path);
    return entry.isFile() ? [path] : [];
  });
}

/** Returns null for a file that a store has removed. */
function orNullIfRemoved<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
