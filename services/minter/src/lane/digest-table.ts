import { hash, randomUUID } from 'node:crypto';

/** 128 bits of a key, and its value; 0 is a free slot. */
const SLOT_LENGTH = 5;
const SLOTS_MIN = 64;
const LOAD_MAX = 0.75;
/** Differs in each process, so that nobody can choose texts that share a slot. */
const SALT = randomUUID();

/**
 * Whole numbers from 1 to 2^32 - 1 by text, in 27 to 53 bytes an entry whatever the length of the text: only 128 bits of
 * the SHA-256 of a text are kept. No entry is ever removed.
 */
export class DigestTable {
  #words = new Uint32Array(SLOTS_MIN * SLOT_LENGTH);
  #count = 0;

  /** 0 when there is none. */
  get(text: string): number {
    return this.#words[find(this.#words, digestOf(text)) + SLOT_LENGTH - 1]!;
  }

  set(text: string, value: number): void {
    const digest = digestOf(text);
    const at = find(this.#words, digest);
    if (this.#words[at + SLOT_LENGTH - 1] === 0) this.#count++;
    put(this.#words, at, [...digest, value]);
    if (this.#count > (LOAD_MAX * this.#words.length) / SLOT_LENGTH) this.#grow();
  }

  #grow(): void {
    const grown = new Uint32Array(2 * this.#words.length);
    for (let from = 0; from < this.#words.length; from += SLOT_LENGTH) {
      const slot = this.#words.subarray(from, from + SLOT_LENGTH);
      if (slot[SLOT_LENGTH - 1] !== 0) put(grown, find(grown, slot), slot);
    }
    this.#words = grown;
  }
}

function digestOf(text: string): Uint32Array {
  const bytes = hash('sha256', SALT + text, 'buffer');
  return Uint32Array.from([0, 4, 8, 12], (at) => bytes.readUInt32LE(at));
}

/** The first word of the slot of a digest, or of the free slot where it belongs. */
function find(words: Uint32Array, digest: Uint32Array): number {
  const slots = words.length / SLOT_LENGTH;
  for (let slot = digest[0]! % slots; ; slot = (slot + 1) % slots) {
    const at = slot * SLOT_LENGTH;
    const isOwn = digest[0] === words[at] && digest[1] === words[at + 1] && digest[2] === words[at + 2];
    if (words[at + SLOT_LENGTH - 1] === 0 || (isOwn && digest[3] === words[at + 3])) return at;
  }
}

function put(words: Uint32Array, at: number, slot: ArrayLike<number>): void {
  for (let word = 0; word < SLOT_LENGTH; word++) words[at + word] = slot[word]!;
}
