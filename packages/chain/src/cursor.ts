import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type Direction, type Gap, MICROSECONDS_MAX } from './position.ts';
import type { ActivityFilters } from './store.ts';
import { fromUuidText, toUuidText } from './texts.ts';

/** A secret that cursors are signed with. */
export interface CursorKey {
  /** 0 to 255, never reused for another secret. Every cursor contains the id of its key. */
  readonly id: number;
  /** At least 32 bytes. */
  readonly secret: Buffer;
}

/** The query that a cursor belongs to. It is valid for no other. */
export interface CursorScope {
  /** Name of the chain. */
  readonly chain: string;
  readonly filters: ActivityFilters;
}

/** Where to continue, and in which direction. */
export interface CursorPlace {
  readonly gap: Gap;
  readonly direction: Direction;
}

/** The decoded cursor, or why it is refused. */
export type ReadCursor =
  | { readonly ok: true; readonly place: CursorPlace }
  | { readonly ok: false; readonly reason: 'malformed' | 'foreign' | 'mismatched' };

export interface Cursors {
  /** A text that is safe in a URL. */
  encode(place: CursorPlace, scope: CursorScope): string;
  /** Never throws, whatever text a client sent. */
  decode(text: string, scope: CursorScope): ReadCursor;
}

const VERSION = 1;
const SECRET_BYTES_MIN = 32;
const SCOPE_BYTES = 16;
const MAC_BYTES = 16;
/** Version, key id, flags, microseconds, id, scope. */
const AT = { keyId: 1, flags: 2, updatedAt: 3, id: 11, scope: 27, mac: 43 } as const;
const CURSOR_BYTES = AT.mac + MAC_BYTES;
/** Flags: the direction, and the side of the position on which the gap is. */
const PREVIOUS = 1;
const AFTER = 2;

/**
 * Creates the functions that write and read cursors. The first key signs, and all are accepted. To change the key, put
 * a new one first, and remove the old one when its cursors are no longer used. Readers with a cursor of a removed key
 * have to start from the beginning.
 * @throws RangeError for keys that cannot be used; its message contains no secret
 */
export function createCursors({ keys }: { keys: readonly CursorKey[] }): Cursors {
  const [signing] = keys;
  if (signing === undefined) throw new RangeError('cursors need a key');
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new RangeError('two keys of cursors have one id');
  for (const { id, secret } of keys) {
    if (!Number.isInteger(id) || id < 0 || id > 255) throw new RangeError('the id of a cursor key is 0 to 255');
    if (secret.length < SECRET_BYTES_MIN)
      throw new RangeError(`the secret of a cursor key has at least ${SECRET_BYTES_MIN} bytes`);
  }
  // Created once: creating a key object takes longer than signing with it.
  const keyOf = new Map(keys.map(({ id, secret }) => [id, createSecretKey(secret)]));
  const signingKey = keyOf.get(signing.id)!;
  return {
    encode: ({ gap, direction }, scope) => {
      const bytes = Buffer.alloc(CURSOR_BYTES);
      bytes[0] = VERSION;
      bytes[AT.keyId] = signing.id;
      bytes[AT.flags] = (direction === 'previous' ? PREVIOUS : 0) | (gap.side === 'after' ? AFTER : 0);
      bytes.writeBigUInt64BE(BigInt(gap.updatedAt), AT.updatedAt);
      fromUuidText(gap.id).copy(bytes, AT.id);
      hashScope(scope).copy(bytes, AT.scope);
      sign(bytes, signingKey).copy(bytes, AT.mac);
      return bytes.toString('base64url');
    },
    decode: (text, scope) => {
      const bytes = toBytes(text);
      if (bytes === null) return { ok: false, reason: 'malformed' };
      const key = keyOf.get(bytes[AT.keyId]!);
      const isOurs = key !== undefined && timingSafeEqual(sign(bytes, key), bytes.subarray(AT.mac));
      if (!isOurs) return { ok: false, reason: 'foreign' };
      if (!hashScope(scope).equals(bytes.subarray(AT.scope, AT.mac))) return { ok: false, reason: 'mismatched' };
      return { ok: true, place: toPlace(bytes) };
    },
  };
}

function toPlace(bytes: Buffer): CursorPlace {
  const flags = bytes[AT.flags]!;
  return {
    direction: (flags & PREVIOUS) === 0 ? 'next' : 'previous',
    gap: {
      side: (flags & AFTER) === 0 ? 'before' : 'after',
      updatedAt: Number(bytes.readBigUInt64BE(AT.updatedAt)),
      id: toUuidText(bytes.subarray(AT.id, AT.scope)),
    },
  };
}

/**
 * Null for a text that is no cursor of this version. Each cursor has one spelling only, so that cursors can be compared
 * as text.
 */
function toBytes(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  const isCursor = bytes.length === CURSOR_BYTES && bytes[0] === VERSION && bytes.toString('base64url') === text;
  return isCursor && bytes.readBigUInt64BE(AT.updatedAt) <= BigInt(MICROSECONDS_MAX) ? bytes : null;
}

function sign(bytes: Buffer, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(bytes.subarray(0, AT.mac)).digest().subarray(0, MAC_BYTES);
}

/** Cache: a page decodes one cursor and encodes two, all with the same scope. */
const hashes = new WeakMap<CursorScope, Buffer>();

function hashScope(scope: CursorScope): Buffer {
  const known = hashes.get(scope);
  if (known !== undefined) return known;
  const made = makeHash(scope);
  hashes.set(scope, made);
  return made;
}

/** JSON, because it separates the members and tells null from any text. */
function makeHash({ chain, filters }: CursorScope): Buffer {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  const text = JSON.stringify([chain, fromIndexedAt, toIndexedAt, contractAddress, type]);
  return hash('sha256', text, 'buffer').subarray(0, SCOPE_BYTES);
}
