/** RowBinary values, written into a buffer that has room for them; each `write` returns where the next value goes. */

/**
 * Turns the sixteen bytes at `at` into a UUID: two little-endian 64-bit numbers, the high half first, so each half
 * stands the other way round.
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

/** Length of what follows, seven bits a byte, the lowest first. */
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

/** Bytes of a row but for its strings, rounded up. */
const FIXED_BYTES = 256;
/** UTF-8 bytes of one UTF-16 unit. */
const UNIT_BYTES_MAX = 3;

/** Room that a row with these strings needs at most. */
export function rowBytesMax(...texts: string[]): number {
  return FIXED_BYTES + UNIT_BYTES_MAX * texts.reduce((sum, text) => sum + text.length, 0);
}

/** Copies sixteen bytes. @throws RangeError when there are more or fewer */
export function writeKey(target: Buffer, at: number, key: Buffer): number {
  if (key.length !== 16) throw new RangeError('a key or an id has sixteen bytes');
  key.copy(target, at);
  return at + 16;
}

export function writeByte(target: Buffer, at: number, value: number): number {
  target[at] = value;
  return at + 1;
}

/** Last millisecond that DateTime64 can show: the end of 2299. */
export const TIME_MS_MAX = 10_413_791_999_999;

/** Epoch milliseconds. @throws RangeError when the column cannot show them */
export function writeTime(target: Buffer, at: number, timeMs: number): number {
  if (!Number.isInteger(timeMs) || timeMs < 0 || timeMs > TIME_MS_MAX) throw new RangeError('time does not fit');
  return writeInt64(target, at, timeMs);
}
