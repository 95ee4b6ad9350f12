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

  /** An Int64 that a number represents exactly. */
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

  /** @throws RangeError behind the end */
  uint8(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError('RowBinary ends within a row');
    return byte;
  }

  /** A text that has only ASCII characters, such as that of a UUID. */
  ascii(): string {
    const from = this.#skipText();
    return this.#bytes.toString('latin1', from, this.#at);
  }

  /** The bytes of a text, without a copy. */
  bytes(): Buffer {
    const from = this.#skipText();
    return this.#bytes.subarray(from, this.#at);
  }

  /** @returns where the text begins; it ends at the new position of the reader */
  #skipText(): number {
    const length = this.#length();
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError('a text of RowBinary ends behind its bytes');
    return from;
  }

  /** An unsigned LEB128: seven bits a byte, the lowest first. */
  #length(): number {
    let length = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.uint8();
      length += (byte & 127) * factor;
      if (byte < 128) return length;
    }
  }
}
