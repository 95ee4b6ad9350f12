import { hash } from 'node:crypto';
import type { IdentityKind } from '@playline/contracts';

/** Bytes of an identity key: 128 bits, so that two identities never meet by chance. */
export const IDENTITY_KEY_BYTES = 16;

/** As long as the hash's own output: a shorter pepper could be searched for. */
const PEPPER_BYTES_MIN = 32;

/** Messages of one batch come from one or two people, each with an anonymous and a user id, typed and untyped. */
const CACHED_IDS_MAX = 8;

/** Environment, kind and the longest id of the contract (256 code points of 4 bytes) with room to spare. */
const SCRATCH_BYTES = 2048;

/**
 * Key of an identity: 16 bytes. The buffer may be shared with other callers; nobody may write into it.
 * `environmentId` and `kind` hold no NUL; `id` may, it is trimmed, and it must not be blank.
 */
export type IdentityKeyer = (environmentId: string, kind: IdentityKind, id: string) => Buffer;

interface Cached {
  environmentId: string;
  kind: IdentityKind;
  id: string;
  key: Buffer;
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
  const cache: Cached[] = [];
  let oldest = 0;

  const digest = (environmentId: string, kind: IdentityKind, id: string): Buffer => {
    const text = `${environmentId}\0${kind}\0${id.trim()}`;
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
    for (const entry of cache)
      if (entry.id === id && entry.kind === kind && entry.environmentId === environmentId) return entry.key;
    const key = digest(environmentId, kind, id);
    cache[oldest] = { environmentId, kind, id, key };
    oldest = (oldest + 1) % CACHED_IDS_MAX;
    return key;
  };
}
