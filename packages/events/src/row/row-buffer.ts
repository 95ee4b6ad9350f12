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

  /** One finished row, valid until the next change. */
  rowAt(row: number): Buffer {
    return this.bytes.subarray(this.rowEnds[row - 1] ?? 0, this.rowEnds[row]);
  }

  /** The last column of a row, an UInt64: every table that names its place in the log ends in `kafka_offset`. */
  offsetAt(row: number): number {
    return Number(this.bytes.readBigUInt64LE(this.rowEnds[row]! - 8));
  }

  /** These rows, in this order; a copy unless they are all. Valid until the next change. */
  pick(rows: readonly number[]): Buffer {
    return rows.length === this.rows ? this.toBytes() : Buffer.concat(rows.map((row) => this.rowAt(row)));
  }

  clear(): void {
    this.truncate(0);
  }
}
