/** Loaded with `node --import`: dumps all memory, including freed memory, and a heap snapshot to WRITE_MEMORY_TO. */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { writeHeapSnapshot } from 'node:v8';

const CHUNK_BYTES = 1 << 20;
const folder = process.env.WRITE_MEMORY_TO ?? '';

const write = process.stdout.write;
process.stdout.write = ((...args: Parameters<typeof write>) => {
  process.stdout.write = write;
  // Dumps memory before the heap snapshot, because the snapshot collects garbage, which may contain the key.
  writeMemory(join(folder, 'memory'));
  writeHeapSnapshot(join(folder, 'heap.heapsnapshot'));
  return process.stdout.write(...args);
}) as typeof write;

function writeMemory(path: string): void {
  const [memory, file] = [openSync('/proc/self/mem', 'r'), openSync(path, 'w')];
  const chunk = Buffer.alloc(CHUNK_BYTES);
  const empty = Buffer.alloc(CHUNK_BYTES);
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const [, start, end] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    if (start === undefined || end === undefined) continue;
    for (let at = Number.parseInt(start, 16); at < Number.parseInt(end, 16); at += CHUNK_BYTES) {
      const length = Math.min(CHUNK_BYTES, Number.parseInt(end, 16) - at);
      const read = tryRead(memory, chunk.subarray(0, length), at);
      if (read > 0 && !chunk.subarray(0, read).equals(empty.subarray(0, read))) writeSync(file, chunk, 0, read);
    }
  }
  closeSync(memory);
  closeSync(file);
}

/** Returns 0 for regions that exist but cannot be read. */
function tryRead(memory: number, into: Buffer, at: number): number {
  try {
    return readSync(memory, into, 0, into.length, at);
  } catch {
    return 0;
  }
}
