/**
 * Several batches stand in one buffer: each buffer of its own would be one more thing outside the heap to collect.
 * Smaller than what is in flight on a busy gateway, so that little is held beside what is waited for.
 */
export const SLAB_BYTES = 512 * 1024;

/** Where encoded records stand until nobody refers to them: one behind the other. */
export class RecordMemory {
  bytes = Buffer.alloc(0);
  /** The next free byte of `bytes`. */
  at = 0;

  hasRoom(bytes: number): boolean {
    return this.at + bytes <= this.bytes.length;
  }

  /** Makes room for this many bytes. What stands already stays where it is. */
  reserve(bytesMax: number): void {
    if (this.hasRoom(bytesMax)) return;
    this.bytes = Buffer.allocUnsafeSlow(Math.max(bytesMax, SLAB_BYTES));
    this.at = 0;
  }

  /** Everything from `at` to before `end`, which is taken then. */
  take(end: number): Buffer {
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}
