import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompressBlocks } from './compressed-blocks.ts';
import { findInBytes, type Needle, type Trace } from './needle.ts';

export interface FileSearch {
  /** @param path relative to the folder @returns the location in traces */
  readonly locationOf?: (path: string) => string;
  /** Whether the decompressed content of ClickHouse files is also searched. */
  readonly decompress?: boolean;
}

/** Searches the bytes of all files in a folder and its subfolders. */
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

/**
 * Removes the 20 MB of zeros that Kafka preallocates per partition. Keeps a few zeros because a needle may end with
 * zeros.
 */
function withoutReserve(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end >= ZEROS.length && bytes.subarray(end - ZEROS.length, end).equals(ZEROS)) end -= ZEROS.length;
  return bytes.subarray(0, end + 64);
}

/** Paths of all files in a folder. Symbolic links are not followed. */
function filesOf(folder: string, within = ''): string[] {
  const entries = orNullIfRemoved(() => readdirSync(join(folder, within), { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => {
    const path = join(within, entry.name);
    if (entry.isDirectory()) return filesOf(folder, path);
    return entry.isFile() ? [path] : [];
  });
}

/** Returns null if a store has deleted the file in the meantime. */
function orNullIfRemoved<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
