import { RowBuffer } from '@playline/events';

/** Output buffers that are used again: a block of 8 MB a second would otherwise keep the collector busy. */
export interface BufferPool {
  take(): RowBuffer;
  give(buffer: RowBuffer): void;
}

/** A block ends with the row that passes its limit: room for one of the largest message's size, twice. */
const LAST_ROW_BYTES = 64 * 1024;
/** One written, two waiting and one filled for each of six busy partitions; more than that is a burst. */
const KEPT_MAX = 24;
/** A buffer that grew further is not kept: one record in millions makes it. */
const KEPT_GROWTH_MAX = 4;

/**
 * Buffers have room for a whole block from the start. What is not written to takes no memory, and a buffer that grows
 * into its block by doubling has copied all of it once by then.
 * @param blockBytesMax limit of a block's rows
 */
export function createBufferPool(blockBytesMax: number): BufferPool {
  const free: RowBuffer[] = [];
  return {
    take: () => free.pop() ?? new RowBuffer(blockBytesMax + LAST_ROW_BYTES),
    give(buffer) {
      if (free.length >= KEPT_MAX || buffer.bytes.length > KEPT_GROWTH_MAX * blockBytesMax) return;
      buffer.clear();
      free.push(buffer);
    },
  };
}
