import { RowBuffer } from '@playline/events';

/** Output buffers that are used again: a block of 8 MB a second would otherwise keep the collector busy. */
export interface BufferPool {
  take(): RowBuffer;
  give(buffer: RowBuffer): void;
}

/** First size of a buffer; it doubles until a block fits. */
const FIRST_BYTES = 256 * 1024;
/** One filled, one written and two waiting for each of a few busy partitions; more than that is a burst. */
const KEPT_MAX = 16;

/** @param keptBytesMax a larger buffer is not kept: one record in millions makes it */
export function createBufferPool(keptBytesMax: number): BufferPool {
  const free: RowBuffer[] = [];
  return {
    take: () => free.pop() ?? new RowBuffer(FIRST_BYTES),
    give(buffer) {
      if (free.length >= KEPT_MAX || buffer.bytes.length > keptBytesMax) return;
      buffer.clear();
      free.push(buffer);
    },
  };
}
