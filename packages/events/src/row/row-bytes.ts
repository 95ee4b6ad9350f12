/** Writers of RowBinary values. The buffer must have room. Each `write…` returns the position after the value. */

/**
 * Turns the sixteen bytes at `at` into a UUID in ClickHouse's format: two 64-bit numbers, the high half first, each in
 * little-endian order. So the bytes of each half are reversed.
 */
export function turnUuid(target: Buffer, at: number): void {
  for (let half = at; half <= at + 8; half += 8) {
    for (let index = 0; index < 4; index++) {
      const byte = target[half + index]!;
      target[half + index] = target[half + 7 - index]!;
      target[half + 7 - index] = byte;
    }
  }
}

/** A whole number below 2^53 as eight little-endian bytes. */
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

/** Length prefix as an unsigned LEB128: seven bits a byte, the lowest first. */
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

/** Upper bound of the bytes of a row without its strings. */
const FIXED_BYTES = 256;
/** Most UTF-8 bytes that one UTF-16 code unit takes. */
const UNIT_BYTES_MAX = 3;

/** Upper bound of the bytes of a row with these strings. */
export function rowBytesMax(...texts: string[]): number {
  return FIXED_BYTES + UNIT_BYTES_MAX * texts.reduce((sum, text) => sum + text.length, 0);
}

/** Copies sixteen bytes. @throws RangeError for any other length */
export function writeKey(target: Buffer, at: number, key: Buffer): number {
  if (key.length !== 16) throw new RangeError('a key or an id has sixteen bytes');
  key.copy(target, at);
  return at + 16;
}

export function writeByte(target: Buffer, at: number, value: number): number {
  target[at] = value;
  return at + 1;
}

/** Last millisecond of DateTime64: the end of 2299. */
export const TIME_MS_MAX = 10_413_791_999_999;

/** Epoch milliseconds. @throws RangeError when the column cannot store them */
export function writeTime(target: Buffer, at: number, timeMs: number): number {
  if (!Number.isInteger(timeMs) || timeMs < 0 || timeMs > TIME_MS_MAX) throw new RangeError('time does not fit');
  return writeInt64(target, at, timeMs);
}
