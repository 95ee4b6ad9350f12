import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Direction in which a page is read from its gap. Its rows are in ascending order either way. */
export type Direction = 'next' | 'previous';

/** On which side of a position a gap is. */
export type GapSide = 'before' | 'after';

/**
 * Whether a position lies beyond a gap in the direction of reading.
 * @param order below zero when it comes before the position of the gap, zero when it is the same
 */
export function isBeyondGap(order: number, side: GapSide, direction: Direction): boolean {
  if (order === 0) return (side === 'before') === (direction === 'next');
  return order > 0 === (direction === 'next');
}

/** A secret that cursors are signed with. */
export interface CursorKey {
  /** 0 to 255, never reused for another secret. Every cursor contains the id of its key. */
  readonly id: number;
  /** At least 32 bytes. */
  readonly secret: Buffer;
}

/** Cursors name their key in one byte. A secret is at least as long as the output of the hash that it is the key of. */
export const CURSOR_KEY = { idMax: 255, secretBytesMin: 32 } as const;

/** Where to continue, and in which direction: a gap beside a position, which is a time and an id. */
export interface SignedPosition {
  readonly direction: Direction;
  readonly side: GapSide;
  /** A whole number. */
  readonly time: number;
  /** 16 bytes. */
  readonly id: Buffer;
}

/** The decoded cursor, or why it is refused. */
export type ReadSignedCursor =
  | { readonly ok: true; readonly position: SignedPosition }
  | { readonly ok: false; readonly reason: 'malformed' | 'foreign' | 'mismatched' };

export interface SignedCursors<Scope> {
  /** A text that is safe in a URL. */
  encode(place: SignedPosition, scope: Scope): string;
  /** Never throws, whatever text a client sent. */
  decode(text: string, scope: Scope): ReadSignedCursor;
}

export interface SignedCursorOptions<Scope> {
  readonly keys: readonly CursorKey[];
  /** Part of the signed text: different for each kind of cursor that is signed with the same keys. */
  readonly purpose: string;
  /** No position has a later time. */
  readonly timeMax: number;
  /** What identifies the query that a cursor belongs to. It is valid for no other. */
  readonly nameOf: (scope: Scope) => readonly unknown[];
}

const VERSION = 1;
const SCOPE_BYTES = 16;
const MAC_BYTES = 16;
/** Version, key id, flags, time, id, scope. */
const AT = { keyId: 1, flags: 2, time: 3, id: 11, scope: 27, mac: 43 } as const;
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
export function createSignedCursors<Scope extends object>(options: SignedCursorOptions<Scope>): SignedCursors<Scope> {
  const { keys, purpose, timeMax } = options;
  const signing = checkKeys(keys);
  // Created once: creating a key object takes longer than signing with it.
  const keyOf = new Map(keys.map(({ id, secret }) => [id, createSecretKey(secret)]));
  const signingKey = keyOf.get(signing.id)!;
  const hashScope = createHashScope(options.nameOf);
  const sign = (bytes: Buffer, key: KeyObject) =>
    createHmac('sha256', key).update(purpose).update(bytes.subarray(0, AT.mac)).digest().subarray(0, MAC_BYTES);
  return {
    encode: ({ direction, side, time, id }, scope) => {
      const bytes = Buffer.alloc(CURSOR_BYTES);
      bytes[0] = VERSION;
      bytes[AT.keyId] = signing.id;
      bytes[AT.flags] = (direction === 'previous' ? PREVIOUS : 0) | (side === 'after' ? AFTER : 0);
      bytes.writeBigUInt64BE(BigInt(time), AT.time);
      id.copy(bytes, AT.id);
      hashScope(scope).copy(bytes, AT.scope);
      sign(bytes, signingKey).copy(bytes, AT.mac);
      return bytes.toString('base64url');
    },
    decode: (text, scope) => {
      const bytes = toBytes(text, timeMax);
      if (bytes === null) return { ok: false, reason: 'malformed' };
      const key = keyOf.get(bytes[AT.keyId]!);
      const isOurs = key !== undefined && timingSafeEqual(sign(bytes, key), bytes.subarray(AT.mac));
      if (!isOurs) return { ok: false, reason: 'foreign' };
      if (!hashScope(scope).equals(bytes.subarray(AT.scope, AT.mac))) return { ok: false, reason: 'mismatched' };
      return { ok: true, position: toPosition(bytes) };
    },
  };
}

/** @returns the key that signs @throws RangeError */
function checkKeys(keys: readonly CursorKey[]): CursorKey {
  const { idMax, secretBytesMin } = CURSOR_KEY;
  const [signing] = keys;
  if (signing === undefined) throw new RangeError('cursors need a key');
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new RangeError('two keys of cursors have one id');
  for (const { id, secret } of keys) {
    if (!Number.isInteger(id) || id < 0 || id > idMax) throw new RangeError(`the id of a cursor key is 0 to ${idMax}`);
    if (secret.length < secretBytesMin)
      throw new RangeError(`the secret of a cursor key has at least ${secretBytesMin} bytes`);
  }
  return signing;
}

/**
 * Null for a text that is no cursor of this version. Each cursor has one spelling only, so that cursors can be compared
 * as text.
 */
function toBytes(text: string, timeMax: number): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  const isCursor = bytes.length === CURSOR_BYTES && bytes[0] === VERSION && bytes.toString('base64url') === text;
  return isCursor && bytes.readBigUInt64BE(AT.time) <= BigInt(timeMax) ? bytes : null;
}

function toPosition(bytes: Buffer): SignedPosition {
  const flags = bytes[AT.flags]!;
  return {
    direction: (flags & PREVIOUS) === 0 ? 'next' : 'previous',
    side: (flags & AFTER) === 0 ? 'before' : 'after',
    time: Number(bytes.readBigUInt64BE(AT.time)),
    id: bytes.subarray(AT.id, AT.scope),
  };
}

/** The hash is kept with its scope: a page decodes one cursor and encodes two, all with the same scope. */
function createHashScope<Scope extends object>(nameOf: (scope: Scope) => readonly unknown[]) {
  const hashes = new WeakMap<Scope, Buffer>();
  return (scope: Scope): Buffer => {
    const known = hashes.get(scope);
    if (known !== undefined) return known;
    // JSON, because it separates the members and tells null from any text.
    const made = hash('sha256', JSON.stringify(nameOf(scope)), 'buffer').subarray(0, SCOPE_BYTES);
    hashes.set(scope, made);
    return made;
  };
}
