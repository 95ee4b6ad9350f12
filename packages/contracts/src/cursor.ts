import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';

/** Direction in which a page is read from its gap. Rows ascend either way. */
export type Direction = 'next' | 'previous';

export type GapSide = 'before' | 'after';

/**
 * Whether a position is beyond a gap in reading direction.
 * @param order negative when it is before the position of the gap, zero when equal
 */
export function isBeyondGap(order: number, side: GapSide, direction: Direction): boolean {
  if (order === 0) return (side === 'before') === (direction === 'next');
  return order > 0 === (direction === 'next');
}

export interface CursorKey {
  /** 0 to 255, never reused. Every cursor contains the id of its key. */
  readonly id: number;
  /** At least 32 bytes. */
  readonly secret: Buffer;
}

export const CURSOR_KEY = { idMax: 255, secretBytesMin: 32 } as const;

/** Where to continue: a gap beside a position (time and id). */
export interface SignedPosition {
  readonly direction: Direction;
  readonly side: GapSide;
  /** A whole number. */
  readonly time: number;
  /** 16 bytes. */
  readonly id: Buffer;
}

export type ReadSignedCursor =
  | { readonly ok: true; readonly position: SignedPosition }
  | { readonly ok: false; readonly reason: 'malformed' | 'foreign' | 'mismatched' };

export interface SignedCursors<Scope> {
  /** URL-safe. */
  encode(position: SignedPosition, scope: Scope): string;
  /** Never throws. */
  decode(text: string, scope: Scope): ReadSignedCursor;
}

export interface SignedCursorOptions<Scope> {
  readonly keys: readonly CursorKey[];
  /** Distinguishes kinds of cursors that are signed with the same keys. */
  readonly purpose: string;
  /** No position has a later time. */
  readonly timeMax: number;
  /** Identifies the query of a cursor, which is invalid for any other. */
  readonly nameOf: (scope: Scope) => readonly unknown[];
}

const VERSION = 1;
const SCOPE_BYTES = 16;
const MAC_BYTES = 16;
/** Layout of the bytes. */
const AT = { keyId: 1, flags: 2, time: 3, id: 11, scope: 27, mac: 43 } as const;
const CURSOR_BYTES = AT.mac + MAC_BYTES;
/** Flags. */
const PREVIOUS = 1;
const AFTER = 2;

/**
 * Creates the codec of cursors. The first key signs, all are accepted: to rotate, put a new key first and remove the
 * old one later.
 * @throws RangeError for unusable keys, without their secrets
 */
export function createSignedCursors<Scope extends object>(options: SignedCursorOptions<Scope>): SignedCursors<Scope> {
  const { keys, purpose, timeMax } = options;
  const signing = checkKeys(keys);
  // Creating a key object takes longer than signing with it.
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
      if (key === undefined || !timingSafeEqual(sign(bytes, key), bytes.subarray(AT.mac)))
        return { ok: false, reason: 'foreign' };
      if (!hashScope(scope).equals(bytes.subarray(AT.scope, AT.mac))) return { ok: false, reason: 'mismatched' };
      return { ok: true, position: toPosition(bytes) };
    },
  };
}

/** @returns the signing key */
function checkKeys(keys: readonly CursorKey[]): CursorKey {
  const { idMax, secretBytesMin } = CURSOR_KEY;
  const [signing] = keys;
  if (signing === undefined) throw new RangeError('no cursor key is set');
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new RangeError('two cursor keys have the same id');
  for (const { id, secret } of keys) {
    if (!Number.isInteger(id) || id < 0 || id > idMax) throw new RangeError(`the id of a cursor key is 0 to ${idMax}`);
    if (secret.length < secretBytesMin)
      throw new RangeError(`the secret of a cursor key has at least ${secretBytesMin} bytes`);
  }
  return signing;
}

/** Null for a text that is no cursor. Each cursor has one spelling, so cursors can be compared as text. */
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

/** Cached: a page decodes one cursor and encodes two of one scope. */
function createHashScope<Scope extends object>(nameOf: (scope: Scope) => readonly unknown[]) {
  const hashes = new WeakMap<Scope, Buffer>();
  return (scope: Scope): Buffer => {
    const known = hashes.get(scope);
    if (known !== undefined) return known;
    // JSON separates the members and distinguishes null from text.
    const made = hash('sha256', JSON.stringify(nameOf(scope)), 'buffer').subarray(0, SCOPE_BYTES);
    hashes.set(scope, made);
    return made;
  };
}
