import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decompressBlocks } from './compressed-blocks.ts';
import { findInBytes, type Needle, type Trace } from './needle.ts';

export interface FileSearch {
  /** Told the path within the folder. @returns what the file is called in traces */
  readonly placeOf?: (path: string) => string;
  /** Also looks at what the engine of the column store has compressed. */
  readonly decompress?: boolean;
}

/**
 * Looks into every file below a folder, byte by byte.
 *
 * What it can show: what stands in files that the system lists. What it cannot: blocks of the disk that were given back
 * and not written over, copies that the disk itself keeps, backups.
 */
export function findInFiles(folder: string, needles: readonly Needle[], search: FileSearch = {}): Trace[] {
  const { placeOf = (path) => path, decompress = false } = search;
  const counts = new Map<string, Trace>();
  for (const path of filesOf(folder)) {
    const bytes = orGone(() => readFileSync(join(folder, path)));
    if (bytes === null) continue;
    const unpacked = decompress ? decompressBlocks(bytes) : null;
    const found = [
      ...findInBytes(placeOf(path), bytes, needles),
      ...(unpacked === null ? [] : findInBytes(placeOf(path), unpacked.bytes, needles)),
    ];
    for (const trace of found) {
      const name = `${trace.place} ${trace.needle}`;
      counts.set(name, { ...trace, count: (counts.get(name)?.count ?? 0) + trace.count });
    }
  }
  return [...counts.values()];
}

/** Paths within a folder. Links are not followed: what they lead to is found where it lies. */
function filesOf(folder: string, within = ''): string[] {
  const entries = orGone(() => readdirSync(join(folder, within), { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => {
    const path = join(within, entry.name);
    if (entry.isDirectory()) return filesOf(folder, path);
    return entry.isFile() ? [path] : [];
  });
}

/** Stores remove files while they are looked at. */
function orGone<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
