/** Rows in ClickHouse's RowBinary format, one after the other, in one buffer that is reused for each block. */
export class RowBuffer {
  /** `reserve` may replace it, so read it again afterwards. */
  bytes: Buffer;
  /** Length of the finished rows; the bytes behind them are scratch space. */
  length = 0;
  /** Where each row ends; an empty list is an empty buffer. */
  readonly rowEnds: number[] = [];

  constructor(capacityBytes: number) {
    // `Slow`: its own memory. A small buffer from Node's shared pool would keep the whole pool alive.
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

  /** Ends a row: the scratch bytes up to `end` belong to it now. */
  endRow(end: number): void {
    this.length = end;
    this.rowEnds.push(end);
  }

  /** Removes the last rows until `rows` are left. */
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

  /** The offset of a row, its last column (UInt64): every table with a place in the log ends in `kafka_offset`. */
  offsetAt(row: number): number {
    return Number(this.bytes.readBigUInt64LE(this.rowEnds[row]! - 8));
  }

  /** These rows, in this order. A copy unless it is all rows. Valid until the next change. */
  pick(rows: readonly number[]): Buffer {
    return rows.length === this.rows ? this.toBytes() : Buffer.concat(rows.map((row) => this.rowAt(row)));
  }

  clear(): void {
    this.truncate(0);
  }
}
