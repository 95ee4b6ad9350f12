/** Reads values of the format RowBinary one after the other. */
export class RowBinaryReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Int64 that is exact as a number. */
  int64(): number {
    const low = this.#bytes.readUInt32LE(this.#at);
    const high = this.#bytes.readInt32LE(this.#at + 4);
    this.#at += 8;
    return high * 2 ** 32 + low;
  }

  uint16(): number {
    this.#at += 2;
    return this.#bytes.readUInt16LE(this.#at - 2);
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  text(): string {
    return this.bytes().toString();
  }

  /** A text as its bytes, which are not copied. */
  bytes(): Buffer {
    const length = this.#length();
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError('a text of RowBinary ends behind its bytes');
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Seven bits a byte, the lowest first. */
  #length(): number {
    let length = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.uint8();
      length += (byte & 127) * factor;
      if (byte < 128) return length;
    }
  }
}
