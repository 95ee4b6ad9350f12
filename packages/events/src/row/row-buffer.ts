/** Rows in ClickHouse's RowBinary format, one after the other, in one buffer that is used again block after block. */
export class RowBuffer {
  /** Grows by replacement: read it anew after `reserve`. */
  bytes: Buffer;
  /** Bytes of finished rows; what stands behind is scratch. */
  length = 0;
  /** Where each row ends; an empty list is an empty buffer. */
  readonly rowEnds: number[] = [];

  constructor(capacityBytes: number) {
    // Slow: a buffer of its own, so that a small one never pins the pool that Node shares between small buffers.
    this.bytes = Buffer.allocUnsafeSlow(capacityBytes);
  }

  get rows(): number {
    return this.rowEnds.length;
  }

  /** Makes room for `count` more bytes behind `length`. */
  reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  /** The scratch up to `end` has become a row. */
  endRow(end: number): void {
    this.length = end;
    this.rowEnds.push(end);
  }

  /** Takes rows back until `rows` are left. */
  truncate(rows: number): void {
    this.rowEnds.length = rows;
    this.length = this.rowEnds.at(-1) ?? 0;
  }

  /** Finished rows, valid until the next change. */
  toBytes(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  /**
   * Rows whose last column, an UInt64, is not one of `offsets`; a copy.
   * Every table written in blocks ends in `kafka_offset`, so a block can be cut down without building it again.
   */
  withoutOffsets(offsets: ReadonlySet<number>): { rows: number; bytes: Buffer } {
    const kept: Buffer[] = [];
    let start = 0;
    for (const end of this.rowEnds) {
      if (!offsets.has(Number(this.bytes.readBigUInt64LE(end - 8)))) kept.push(this.bytes.subarray(start, end));
      start = end;
    }
    return { rows: kept.length, bytes: Buffer.concat(kept) };
  }

  clear(): void {
    this.truncate(0);
  }
}
