import { hash, randomInt } from 'node:crypto';
import { IDENTITY_KEY_BYTES, type IdentityKind } from '@playline/contracts';

/** Maximum cached input: environment, kind and an id of typical length. */
const TEXT_BYTES_MAX = 128;
/** A 4-way set-associative cache of 2.5 MB. Colliding ids evict each other but do not slow down lookups. */
const SETS = 4_096;
const WAYS = 4;
const SLOTS = SETS * WAYS;
/** Number of keys per slab. A key from Node's buffer pool would retain the whole pool. */
const SLAB_KEYS = 1_024;

const FNV_PRIME = 0x01000193;

/** Adds bytes to an FNV-1a hash, which selects the cache set. */
function extendHash(hash: number, bytes: Uint8Array, { start, end }: { start: number; end: number }): number {
  let mixed = hash;
  for (let i = start; i < end; i++) mixed = Math.imul(mixed ^ bytes[i]!, FNV_PRIME);
  return mixed;
}

/** Random, so that clients cannot construct ids that collide. */
const HASH_SEED = randomInt(2 ** 31);

/** A bounded cache from hash input to key. Lookups do not allocate strings. */
class KeyTable {
  readonly #texts = Buffer.allocUnsafeSlow(SLOTS * TEXT_BYTES_MAX);
  /** Input length per slot; 0 if the slot is empty. */
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #hashes = new Int32Array(SLOTS);
  /** A single buffer avoids garbage collection of many small objects. */
  readonly #keys = Buffer.allocUnsafeSlow(SLOTS * IDENTITY_KEY_BYTES);
  /** Next way to evict in each set. */
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
    const key = this.allocate();
    const start = slot * IDENTITY_KEY_BYTES;
    for (let i = 0; i < IDENTITY_KEY_BYTES; i++) key[i] = this.#keys[start + i]!;
    return key;
  }

  /** Allocates a buffer for one key. */
  allocate(): Buffer {
    if (this.#slabAt === this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_KEYS * IDENTITY_KEY_BYTES);
      this.#slabAt = 0;
    }
    this.#slabAt += IDENTITY_KEY_BYTES;
    return this.#slab.subarray(this.#slabAt - IDENTITY_KEY_BYTES, this.#slabAt);
  }

  /** Caches a key and evicts the oldest key in the set. */
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

/** A shorter pepper is vulnerable to brute force. */
const PEPPER_BYTES_MIN = 32;

/** Fits environment, kind and the longest id in the contract (256 code points of 4 bytes). */
const SCRATCH_BYTES = 2048;

/**
 * Computes an identity key of 16 bytes. Callers must not modify the returned buffer. `environmentId` and `kind` must
 * not contain NUL; `id` is trimmed and must not be blank.
 */
export type IdentityKeyer = (environmentId: string, kind: IdentityKind, id: string) => Buffer;

/** A keyer that also accepts ids as UTF-8 bytes. */
export interface Utf8IdentityKeyer extends IdentityKeyer {
  /** Computes the key of a trimmed UTF-8 id. */
  ofBytes(environmentId: string, kind: IdentityKind, id: Uint8Array): Buffer;
}

/**
 * Creates a keyer. A key is SHA-256 over pepper ‖ environment ‖ 0x00 ‖ kind ‖ 0x00 ‖ trimmed id (UTF-8), truncated to
 * 16 bytes. A cached id takes 0.15 µs, an uncached id 0.7 µs; `createHmac` is 26 times slower.
 * @throws RangeError if the pepper is shorter than 32 bytes
 */
export function createIdentityKeyer(pepper: Buffer): Utf8IdentityKeyer {
  const scratch = new Scratch(pepper);
  const ofBytes: Utf8IdentityKeyer['ofBytes'] = (environmentId, kind, id) => {
    scratch.setPrefix(environmentId, kind);
    return scratch.keyOf(id);
  };
  const keyOf = (environmentId: string, kind: IdentityKind, id: string) => {
    scratch.setPrefix(environmentId, kind);
    return scratch.keyOfText(id.trim());
  };
  return Object.assign(keyOf, { ofBytes });
}

/** Reusable buffer for the hash input: the pepper, then the identity. */
class Scratch {
  readonly #bytes: Buffer;
  readonly #textStart: number;
  readonly #table = new KeyTable();
  #environmentId = '';
  #kind = '';
  /** Offset of the id in the buffer. */
  #idStart = -1;
  #prefixHash = 0;

  constructor(pepper: Buffer) {
    if (pepper.length < PEPPER_BYTES_MIN)
      throw new RangeError(`IDENTITY_PEPPER must have at least ${PEPPER_BYTES_MIN} bytes`);
    this.#bytes = Buffer.alloc(pepper.length + SCRATCH_BYTES);
    this.#textStart = pepper.copy(this.#bytes);
  }

  /** Writes environment and kind, unless they equal those of the previous call. */
  setPrefix(environmentId: string, kind: IdentityKind): void {
    if (kind === this.#kind && environmentId === this.#environmentId) return;
    this.#environmentId = environmentId;
    this.#kind = kind;
    this.#idStart = this.#textStart + this.#bytes.write(`${environmentId}\0${kind}\0`, this.#textStart);
    this.#prefixHash = extendHash(HASH_SEED, this.#bytes, { start: this.#textStart, end: this.#idStart });
  }

  keyOfText(id: string): Buffer {
    // A UTF-16 code unit has at most three bytes in UTF-8.
    if (id.length * 3 > this.#bytes.length - this.#idStart) return this.keyOf(Buffer.from(id));
    return this.#find(this.#idStart + this.#bytes.write(id, this.#idStart));
  }

  keyOf(id: Uint8Array): Buffer {
    const end = this.#idStart + id.length;
    if (end > this.#bytes.length) return digest(Buffer.concat([this.#bytes.subarray(0, this.#idStart), id]));
    for (let i = 0; i < id.length; i++) this.#bytes[this.#idStart + i] = id[i]!;
    return this.#find(end);
  }

  #find(end: number): Buffer {
    const text = this.#bytes.subarray(this.#textStart, end);
    const textHash = extendHash(this.#prefixHash, this.#bytes, { start: this.#idStart, end });
    const known = this.#table.find(text, textHash);
    if (known !== undefined) return known;
    const key = digest(this.#bytes.subarray(0, end), this.#table.allocate());
    this.#table.add(text, textHash, key);
    return key;
  }
}

/** Hashes to a latin1 string, which is three times faster than hashing to a buffer. */
function digest(input: Uint8Array, key: Buffer = Buffer.alloc(IDENTITY_KEY_BYTES)): Buffer {
  key.write(hash('sha256', input, 'binary'), 0, IDENTITY_KEY_BYTES, 'latin1');
  return key;
}
