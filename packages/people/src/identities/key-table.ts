import { randomInt } from 'node:crypto';
import { IDENTITY_KEY_BYTES } from '@playline/contracts';

/** Longest text that is remembered: environment, kind and an id of usual length. Others are hashed each time. */
const TEXT_BYTES_MAX = 128;
/**
 * A client sends every few seconds, mostly with the same one or two ids. So many texts are cached, in 2.5 MB. The cache
 * is set-associative with four ways: colliding ids only evict three others and slow nothing down.
 */
const SETS = 4_096;
const WAYS = 4;
const SLOTS = SETS * WAYS;
/** Keys of this many texts share one buffer: small buffers would each keep a much larger one alive. */
const SLAB_KEYS = 1_024;

/** Multiplier of FNV-1a. */
const FNV_PRIME = 0x01000193;

/** Continues a hash over more bytes. It only chooses the set; a cached text is compared byte by byte. */
export function hashOn(hash: number, bytes: Uint8Array, { start, end }: { start: number; end: number }): number {
  let mixed = hash;
  for (let i = start; i < end; i++) mixed = Math.imul(mixed ^ bytes[i]!, FNV_PRIME);
  return mixed;
}

/** Different in each process, so that nobody can know which texts share a set. */
export const HASH_SEED = randomInt(2 ** 31);

/**
 * Keys, found by the bytes that they are hashed from. Bounded. It contains no strings, so a text never seen before
 * costs hardly more than its hash. Ids are personal data: they stay in the memory of this process and are never
 * written.
 */
export class KeyTable {
  readonly #texts = Buffer.allocUnsafeSlow(SLOTS * TEXT_BYTES_MAX);
  /** 0 for an empty slot. */
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #hashes = new Int32Array(SLOTS);
  /** One buffer for all: many small objects that live for a while would be costly to collect. */
  readonly #keys = Buffer.allocUnsafeSlow(SLOTS * IDENTITY_KEY_BYTES);
  /** For each set the place that the next text takes. */
  readonly #next = new Uint8Array(SETS);
  #slab = Buffer.alloc(0);
  #slabAt = 0;

  /** @returns a copy of the key */
  find(text: Uint8Array, hash: number): Buffer | undefined {
    const first = setOf(hash) * WAYS;
    for (let slot = first; slot < first + WAYS; slot++) {
      if (this.#hashes[slot] === hash && this.#isText(slot, text)) return this.#copyOf(slot);
    }
    return undefined;
  }

  #isText(slot: number, text: Uint8Array): boolean {
    const { length } = text;
    if (this.#lengths[slot] !== length) return false;
    const texts = this.#texts;
    const start = slot * TEXT_BYTES_MAX;
    for (let i = 0; i < length; i++) if (texts[start + i] !== text[i]) return false;
    return true;
  }

  #copyOf(slot: number): Buffer {
    const key = this.place();
    const start = slot * IDENTITY_KEY_BYTES;
    for (let i = 0; i < IDENTITY_KEY_BYTES; i++) key[i] = this.#keys[start + i]!;
    return key;
  }

  /** Returns a buffer for a new key. Once it is filled, nobody writes into it. */
  place(): Buffer {
    if (this.#slabAt === this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_KEYS * IDENTITY_KEY_BYTES);
      this.#slabAt = 0;
    }
    this.#slabAt += IDENTITY_KEY_BYTES;
    return this.#slab.subarray(this.#slabAt - IDENTITY_KEY_BYTES, this.#slabAt);
  }

  /** Remembers a key, and forgets the oldest of its set. */
  add(text: Uint8Array, hash: number, key: Buffer): void {
    const { length } = text;
    if (length > TEXT_BYTES_MAX) return;
    const set = setOf(hash);
    const way = this.#next[set]!;
    const slot = set * WAYS + way;
    this.#next[set] = (way + 1) % WAYS;
    this.#texts.set(text, slot * TEXT_BYTES_MAX);
    this.#lengths[slot] = length;
    this.#hashes[slot] = hash;
    this.#keys.set(key, slot * IDENTITY_KEY_BYTES);
  }
}

function setOf(hash: number): number {
  return (hash ^ (hash >>> 15)) & (SETS - 1);
}
