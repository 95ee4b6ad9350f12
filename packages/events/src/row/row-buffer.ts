/** A reusable buffer of rows in ClickHouse's RowBinary format. */
export class RowBuffer {
  bytes: Buffer;
  /** Length of the finished rows, which is followed by scratch space. */
  length = 0;
  readonly rowEnds: number[] = [];

  constructor(capacityBytes: number) {
    // `Slow`, because a buffer from Node's shared pool would retain the complete pool.
    this.bytes = Buffer.allocUnsafeSlow(capacityBytes);
  }

  get rows(): number {
    return this.rowEnds.length;
  }

  /** Reserves `count` bytes after `length`. */
  reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }

  /** Turns the scratch bytes up to `end` into a row. */
  endRow(end: number): void {
    this.length = end;
    this.rowEnds.push(end);
  }

  truncate(rows: number): void {
    this.rowEnds.length = rows;
    this.length = this.rowEnds.at(-1) ?? 0;
  }

  /** Returns the finished rows, valid until the next change. */
  toBytes(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  /** Returns one finished row, valid until the next change. */
  rowAt(row: number): Buffer {
    return this.bytes.subarray(this.rowEnds[row - 1] ?? 0, this.rowEnds[row]);
  }

  /** Returns the Kafka offset of a row, which is the last column of tables with offsets. */
  offsetAt(row: number): number {
    return Number(this.bytes.readBigUInt64LE(this.rowEnds[row]! - 8));
  }

  /** Returns the given rows in order, as a copy unless all rows are picked. Valid until the next change. */
  pick(rows: readonly number[]): Buffer {
    return rows.length === this.rows ? this.toBytes() : Buffer.concat(rows.map((row) => this.rowAt(row)));
  }

  clear(): void {
    this.truncate(0);
  }
}

// The following functions write RowBinary values into reserved bytes and return the position after the value.

/** Reverses the bytes of each half of a UUID, which ClickHouse stores as two little-endian 64-bit numbers. */
export function swapUuidBytes(target: Buffer, at: number): void {
  for (let half = at; half <= at + 8; half += 8) {
    for (let index = 0; index < 4; index++) {
      const byte = target[half + index]!;
      target[half + index] = target[half + 7 - index]!;
      target[half + 7 - index] = byte;
    }
  }
}

/** Writes an integer below 2^53 as eight little-endian bytes. */
export function writeInt64(target: Buffer, at: number, value: number): number {
  const low = value >>> 0;
  const high = Math.floor(value / 2 ** 32);
  target[at] = low;
  target[at + 1] = low >>> 8;
  target[at + 2] = low >>> 16;
  target[at + 3] = low >>> 24;
  target[at + 4] = high;
  target[at + 5] = high >>> 8;
  target[at + 6] = high >>> 16;
  target[at + 7] = high >>> 24;
  return at + 8;
}

/** Writes a length prefix in unsigned LEB128: seven bits per byte, lowest bits first. */
export function writeLength(target: Buffer, at: number, length: number): number {
  let rest = length;
  while (rest > 127) {
    target[at++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  target[at++] = rest;
  return at;
}

export function writeUInt16(target: Buffer, at: number, value: number): number {
  target[at] = value;
  target[at + 1] = value >>> 8;
  return at + 2;
}

export function writeString(target: Buffer, at: number, text: string): number {
  const start = writeLength(target, at, Buffer.byteLength(text));
  return start + target.write(text, start);
}

const FIXED_BYTES = 256;
/** Maximum number of UTF-8 bytes per UTF-16 code unit. */
const UNIT_BYTES_MAX = 3;

export function rowBytesMax(...texts: string[]): number {
  return FIXED_BYTES + UNIT_BYTES_MAX * texts.reduce((sum, text) => sum + text.length, 0);
}

/** Copies a key of sixteen bytes. @throws RangeError for any other length */
export function writeKey(target: Buffer, at: number, key: Buffer): number {
  if (key.length !== 16) throw new RangeError('a key or id must have sixteen bytes');
  key.copy(target, at);
  return at + 16;
}

export function writeByte(target: Buffer, at: number, value: number): number {
  target[at] = value;
  return at + 1;
}

/** The last millisecond that DateTime64 supports, at the end of 2299. */
export const TIME_MS_MAX = 10_413_791_999_999;

/** Writes epoch milliseconds. @throws RangeError if the time is out of range */
export function writeTime(target: Buffer, at: number, timeMs: number): number {
  if (!Number.isInteger(timeMs) || timeMs < 0 || timeMs > TIME_MS_MAX) throw new RangeError('the time is out of range');
  return writeInt64(target, at, timeMs);
}
