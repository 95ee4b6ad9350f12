import { hash } from 'node:crypto';
import type { IdentityKind } from '@playline/contracts';

/** Bytes of an identity key: 128 bits, so that two identities never meet by chance. */
export const IDENTITY_KEY_BYTES = 16;

/** As long as the hash's own output: a shorter pepper could be searched for. */
const PEPPER_BYTES_MIN = 32;

/**
 * A client sends every few seconds, mostly under the same one or two ids: this many of them are remembered, twice over,
 * in 4 MB as ids usually are and 25 MB where all are as long as they may be. Measured: 0.25 microseconds for an id
 * that is remembered, 1.8 for one that is not.
 */
const GENERATION_IDS_MAX = 8_192;

/** Environment, kind and the longest id of the contract (256 code points of 4 bytes) with room to spare. */
const SCRATCH_BYTES = 2048;

/**
 * Key of an identity: 16 bytes. The buffer may be shared with other callers; nobody may write into it.
 * `environmentId` and `kind` hold no NUL; `id` may, it is trimmed, and it must not be blank.
 */
export type IdentityKeyer = (environmentId: string, kind: IdentityKind, id: string) => Buffer;

/**
 * Keys by the text they are hashed from, bounded: what was not asked for during a whole generation is forgotten.
 * Ids are personal data: they stay in this process's memory and are never written.
 */
class KeyCache {
  #young = new Map<string, Buffer>();
  #old = new Map<string, Buffer>();
  /** One buffer for all keys of a generation, since small ones of their own would keep much larger ones alive. */
  #slab = Buffer.alloc(0);

  find(text: string): Buffer | undefined {
    const young = this.#young.get(text);
    if (young !== undefined) return young;
    const old = this.#old.get(text);
    return old === undefined ? undefined : this.add(text, old);
  }

  /** @returns a copy of the key */
  add(text: string, key: Buffer): Buffer {
    if (this.#young.size === GENERATION_IDS_MAX) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    if (this.#young.size === 0) this.#slab = Buffer.allocUnsafeSlow(GENERATION_IDS_MAX * IDENTITY_KEY_BYTES);
    const at = this.#young.size * IDENTITY_KEY_BYTES;
    const kept = this.#slab.subarray(at, at + IDENTITY_KEY_BYTES);
    kept.set(key);
    this.#young.set(text, kept);
    return kept;
  }
}

/**
 * Creates the keyer of a deployment: SHA-256 over pepper ‖ environment ‖ 0x00 ‖ kind ‖ 0x00 ‖ trimmed id (UTF-8),
 * cut to 16 bytes. Different inputs hash different bytes, because only the last part may hold the separator.
 * One-shot `crypto.hash` and not `createHmac`, which costs 26 times as much: design page "Identity".
 * @throws RangeError when the pepper is shorter than 32 bytes
 */
export function createIdentityKeyer(pepper: Buffer): IdentityKeyer {
  if (pepper.length < PEPPER_BYTES_MIN) throw new RangeError(`the pepper needs at least ${PEPPER_BYTES_MIN} bytes`);
  const scratch = Buffer.alloc(pepper.length + SCRATCH_BYTES);
  pepper.copy(scratch);
  const cache = new KeyCache();

  const digest = (text: string): Buffer => {
    // A UTF-16 unit never takes more than three bytes of UTF-8.
    const input =
      text.length * 3 <= SCRATCH_BYTES
        ? scratch.subarray(0, pepper.length + scratch.write(text, pepper.length, 'utf8'))
        : Buffer.concat([pepper, Buffer.from(text, 'utf8')]);
    // As text of one byte a character: a digest given as a buffer takes three times as long, for memory of its own.
    const key = Buffer.allocUnsafe(IDENTITY_KEY_BYTES);
    key.write(hash('sha256', input, 'binary'), 0, IDENTITY_KEY_BYTES, 'latin1');
    return key;
  };

  return (environmentId, kind, id) => {
    const text = `${environmentId}\0${kind}\0${id.trim()}`;
    const known = cache.find(text);
    if (known !== undefined) return known;
    const key = digest(text);
    return text.length * 3 <= SCRATCH_BYTES ? cache.add(text, key) : key;
  };
}
