import { BACKSLASH, DIGIT_0, HEX_VALUES, LETTER_U } from './json.ts';

/** No name of the table. */
export const UNKNOWN = -1;

/** No name of the contract is as long: a key that goes on is none. */
const UNESCAPED_MAX = 32;
const unescaped = new Uint8Array(UNESCAPED_MAX);

/**
 * Writes the characters that a key with escapes spells to `unescaped`. Escapes such as `\n` stand for characters that no
 * name has.
 * @returns how many; `UNKNOWN` when they cannot be a name
 */
function unescapeName(bytes: Uint8Array, start: number, end: number): number {
  let length = 0;
  for (let i = start; i < end; length++) {
    if (length === UNESCAPED_MAX) return UNKNOWN;
    if (bytes[i] !== BACKSLASH) {
      unescaped[length] = bytes[i++]!;
      continue;
    }
    if (bytes[i + 1] !== LETTER_U || bytes[i + 2] !== DIGIT_0 || bytes[i + 3] !== DIGIT_0) return UNKNOWN;
    unescaped[length] = (HEX_VALUES[bytes[i + 4]!]! << 4) | HEX_VALUES[bytes[i + 5]!]!;
    // Above ASCII one character takes more bytes than one.
    if (unescaped[length]! > 0x7f) return UNKNOWN;
    i += 6;
  }
  return length;
}

/** Slots of a table; 64 leave room enough that a hash without collisions is found at once. */
const SLOTS = 64;

/**
 * A fixed set of names, looked up by their bytes without building a string: one hash of the length and three bytes,
 * free of collisions within the table, then an exact comparison.
 */
export class NameTable {
  readonly #names: readonly Uint8Array[];
  /** Index of the name in a slot, plus one; 0 for an empty slot. */
  readonly #slots = new Uint8Array(SLOTS);
  #first = 0;
  #middle = 0;

  /** @throws Error when no hash tells the names apart (known when the process starts). */
  constructor(names: readonly string[]) {
    this.#names = names.map((name) => Uint8Array.from(Buffer.from(name)));
    for (this.#first = 1; this.#first < SLOTS; this.#first++) {
      for (this.#middle = 1; this.#middle < SLOTS; this.#middle++) if (this.#fillSlots()) return;
    }
    throw new Error(`no hash without collisions for ${names.join(', ')}`);
  }

  #fillSlots(): boolean {
    this.#slots.fill(0);
    for (const [index, name] of this.#names.entries()) {
      const slot = this.#slotOf(name, 0, name.length);
      if (this.#slots[slot] !== 0) return false;
      this.#slots[slot] = index + 1;
    }
    return true;
  }

  #slotOf(bytes: Uint8Array, start: number, length: number): number {
    const hash =
      bytes[start]! * this.#first +
      bytes[start + (length >> 1)]! * this.#middle +
      bytes[start + length - 1]! +
      length * 7;
    return hash & (SLOTS - 1);
  }

  /** As `find`, for a key that holds escapes and may spell a name with them. */
  findEscaped(bytes: Uint8Array, start: number, end: number): number {
    const length = unescapeName(bytes, start, end);
    return length === UNKNOWN ? UNKNOWN : this.find(unescaped, 0, length);
  }

  /** @returns the place in the table of the name from `start` to before `end`, or `UNKNOWN`. */
  find(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start;
    if (length <= 0) return UNKNOWN;
    const index = this.#slots[this.#slotOf(bytes, start, length)]! - 1;
    if (index === UNKNOWN) return UNKNOWN;
    const name = this.#names[index]!;
    if (name.length !== length) return UNKNOWN;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== name[i]) return UNKNOWN;
    return index;
  }
}
