import { hash, randomUUID } from 'node:crypto';

/** A slot contains 128 bits of a digest and the value, which is 0 if the slot is free. */
const SLOT_LENGTH = 5;
const SLOTS_MIN = 64;
const LOAD_MAX = 0.75;
/** Prevents deliberate collisions. */
const SALT = randomUUID();

/** Maps strings to numbers from 1 to 2^32 - 1 in 27 to 53 bytes per entry, using 128 bits of a SHA-256 digest. */
export class DigestTable {
  #table = new Uint32Array(SLOTS_MIN * SLOT_LENGTH);
  #count = 0;

  /** Returns 0 for an unknown string. */
  get(text: string): number {
    return this.#table[find(this.#table, digestOf(text)) + SLOT_LENGTH - 1]!;
  }

  set(text: string, value: number): void {
    const digest = digestOf(text);
    const at = find(this.#table, digest);
    if (this.#table[at + SLOT_LENGTH - 1] === 0) this.#count++;
    put(this.#table, at, [...digest, value]);
    if (this.#count > (LOAD_MAX * this.#table.length) / SLOT_LENGTH) this.#grow();
  }

  #grow(): void {
    const largerTable = new Uint32Array(2 * this.#table.length);
    for (let from = 0; from < this.#table.length; from += SLOT_LENGTH) {
      const slot = this.#table.subarray(from, from + SLOT_LENGTH);
      if (slot[SLOT_LENGTH - 1] !== 0) put(largerTable, find(largerTable, slot), slot);
    }
    this.#table = largerTable;
  }
}

function digestOf(text: string): Uint32Array {
  const bytes = hash('sha256', SALT + text, 'buffer');
  return Uint32Array.from([0, 4, 8, 12], (at) => bytes.readUInt32LE(at));
}

/** Returns the start of the digest's slot, or of a free slot for the digest. */
function find(table: Uint32Array, digest: Uint32Array): number {
  const slots = table.length / SLOT_LENGTH;
  for (let slot = digest[0]! % slots; ; slot = (slot + 1) % slots) {
    const at = slot * SLOT_LENGTH;
    const isSame = digest[0] === table[at] && digest[1] === table[at + 1] && digest[2] === table[at + 2];
    if (table[at + SLOT_LENGTH - 1] === 0 || (isSame && digest[3] === table[at + 3])) return at;
  }
}

function put(table: Uint32Array, at: number, slot: ArrayLike<number>): void {
  for (let word = 0; word < SLOT_LENGTH; word++) table[at + word] = slot[word]!;
}
