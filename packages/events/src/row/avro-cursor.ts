import type { AvroType } from '../columns.ts';
import { isUnion } from '../columns.ts';

/** Rejects the input. @throws RangeError always */
export function refuse(): never {
  throw new RangeError('the bytes do not match the record schema');
}

const FIXED_SIZES = new Map([
  ['boolean', 1],
  ['float', 4],
  ['double', 8],
]);

/** Reads Avro values from a buffer. Invalid input causes a RangeError. `at` is the position of the next value. */
export class AvroCursor {
  source: Buffer = Buffer.alloc(0);
  at = 0;

  /** Reads an unsigned varint below 2^53. */
  varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 56; scale *= 128) {
      const byte = this.source[this.at++];
      if (byte === undefined) refuse();
      value += (byte & 127) * scale;
      if (byte < 128) return value > Number.MAX_SAFE_INTEGER ? refuse() : value;
    }
    return refuse();
  }

  long(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  size(): number {
    const value = this.long();
    return value < 0 || value > this.source.length - this.at ? refuse() : value;
  }

  skipBytes(count: number): void {
    if (count > this.source.length - this.at) refuse();
    this.at += count;
  }

  skip(type: AvroType): void {
    if (typeof type === 'string') this.#skipPrimitive(type);
    else if (isUnion(type)) this.skip(type[this.long()] ?? refuse());
    else if (type.type === 'record') for (const field of type.fields ?? []) this.skip(field.type);
    else if (type.type === 'array') this.#skipItems([type.items ?? 'null']);
    else if (type.type === 'map') this.#skipItems(['string', type.values ?? 'null']);
    else if (type.type === 'fixed') this.skipBytes(type.size ?? 0);
    else if (type.type === 'enum') this.long();
    else this.skip(type.type);
  }

  #skipPrimitive(type: string): void {
    if (type === 'null') return;
    if (type === 'string' || type === 'bytes') this.skipBytes(this.size());
    else if (type === 'int' || type === 'long') this.#skipVarint();
    else this.skipBytes(FIXED_SIZES.get(type) ?? refuse());
  }

  /** Skips a varint, which may use all 64 bits. */
  #skipVarint(): void {
    for (let length = 1; length <= 10; length++) if ((this.source[this.at++] ?? refuse()) < 128) return;
    refuse();
  }

  #skipItems(types: readonly AvroType[]): void {
    for (let count = this.long(); count !== 0; count = this.long()) {
      // A negative count is followed by the size of the block in bytes.
      if (count < 0) this.skipBytes(this.size());
      // Bounds the loop, because a block could claim billions of empty items.
      else if (count > this.source.length) refuse();
      else for (let item = 0; item < count; item++) for (const type of types) this.skip(type);
    }
  }
}
