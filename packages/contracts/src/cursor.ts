import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';

/** The direction in which a page is read from its gap. Rows on a page are in ascending order in both directions. */
export type Direction = 'next' | 'previous';

export type GapSide = 'before' | 'after';

/**
 * Returns true if a position is beyond a gap in the reading direction.
 * @param order the order of the position relative to the gap: negative if before, zero if equal, positive if after
 */
export function isBeyondGap(order: number, side: GapSide, direction: Direction): boolean {
  if (order === 0) return (side === 'before') === (direction === 'next');
  return order > 0 === (direction === 'next');
}

export interface CursorKey {
  /** 0 to 255, never reused. Every cursor contains the id of the key that signed it. */
  readonly id: number;
  /** At least 32 bytes. */
  readonly secret: Buffer;
}

export const CURSOR_KEY = { idMax: 255, secretBytesMin: 32 } as const;

/** The position at which to continue: the gap before or after a row. */
export interface SignedPosition {
  readonly direction: Direction;
  readonly side: GapSide;
  /** An integer. */
  readonly time: number;
  /** 16 bytes. */
  readonly id: Buffer;
}

export type SignedCursorResult =
  | { readonly ok: true; readonly position: SignedPosition }
  | { readonly ok: false; readonly reason: 'malformed' | 'invalid-signature' | 'mismatched' };

export interface SignedCursors<Scope> {
  /** URL-safe. */
  encode(position: SignedPosition, scope: Scope): string;
  /** Never throws. */
  decode(text: string, scope: Scope): SignedCursorResult;
}

export interface SignedCursorOptions<Scope> {
  readonly keys: readonly CursorKey[];
  /** Distinguishes types of cursors that are signed with the same keys. */
  readonly purpose: string;
  /** Cursors with a later time count as malformed. */
  readonly timeMax: number;
  /** Returns the values that identify the query of a cursor, which is invalid for any other query. */
  readonly toScopeValues: (scope: Scope) => readonly unknown[];
}

const VERSION = 1;
const SCOPE_BYTES = 16;
const MAC_BYTES = 16;
/** Byte offsets of the fields. */
const START = { keyId: 1, flags: 2, time: 3, id: 11, scope: 27, mac: 43 } as const;
const CURSOR_BYTES = START.mac + MAC_BYTES;
/** Bits of the flags byte. */
const PREVIOUS = 1;
const AFTER = 2;

/**
 * Creates a codec for signed cursors. The first key signs and all keys verify. To rotate keys, add a new key at the
 * front and remove the old key later.
 * @throws RangeError if the keys are invalid; the message contains no secrets
 */
export function createSignedCursors<Scope extends object>(options: SignedCursorOptions<Scope>): SignedCursors<Scope> {
  const { keys, purpose, timeMax } = options;
  const { id: signingKeyId } = checkKeys(keys);
  // Creating a key object takes longer than computing a signature.
  const keysById = new Map(keys.map(({ id, secret }) => [id, createSecretKey(secret)]));
  const signingKey = keysById.get(signingKeyId)!;
  const hashScope = createHashScope(options.toScopeValues);
  const sign = (bytes: Buffer, key: KeyObject) =>
    createHmac('sha256', key).update(purpose).update(bytes.subarray(0, START.mac)).digest().subarray(0, MAC_BYTES);
  return {
    encode: ({ direction, side, time, id }, scope) => {
      const bytes = Buffer.alloc(CURSOR_BYTES);
      bytes[0] = VERSION;
      bytes[START.keyId] = signingKeyId;
      bytes[START.flags] = (direction === 'previous' ? PREVIOUS : 0) | (side === 'after' ? AFTER : 0);
      bytes.writeBigUInt64BE(BigInt(time), START.time);
      id.copy(bytes, START.id);
      hashScope(scope).copy(bytes, START.scope);
      sign(bytes, signingKey).copy(bytes, START.mac);
      return bytes.toString('base64url');
    },
    decode: (text, scope) => {
      const bytes = toBytes(text, timeMax);
      if (bytes === null) return { ok: false, reason: 'malformed' };
      const key = keysById.get(bytes[START.keyId]!);
      if (key === undefined || !timingSafeEqual(sign(bytes, key), bytes.subarray(START.mac)))
        return { ok: false, reason: 'invalid-signature' };
      if (!hashScope(scope).equals(bytes.subarray(START.scope, START.mac))) return { ok: false, reason: 'mismatched' };
      return { ok: true, position: toPosition(bytes) };
    },
  };
}

/** @returns the signing key */
function checkKeys(keys: readonly CursorKey[]): CursorKey {
  const { idMax, secretBytesMin } = CURSOR_KEY;
  const [signingKey] = keys;
  if (signingKey === undefined) throw new RangeError('no cursor key is set');
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new RangeError('two cursor keys have the same id');
  for (const { id, secret } of keys) {
    if (!Number.isInteger(id) || id < 0 || id > idMax) throw new RangeError(`cursor key ids must be 0 to ${idMax}`);
    if (secret.length < secretBytesMin)
      throw new RangeError(`cursor key secrets must have at least ${secretBytesMin} bytes`);
  }
  return signingKey;
}

/** Returns null for an invalid cursor. Each cursor has only one valid encoding, so callers can compare strings. */
function toBytes(text: string, timeMax: number): Buffer | null {
  const bytes = Buffer.from(text, 'base64url');
  const isCursor = bytes.length === CURSOR_BYTES && bytes[0] === VERSION && bytes.toString('base64url') === text;
  return isCursor && bytes.readBigUInt64BE(START.time) <= BigInt(timeMax) ? bytes : null;
}

function toPosition(bytes: Buffer): SignedPosition {
  const flags = bytes[START.flags]!;
  return {
    direction: (flags & PREVIOUS) === 0 ? 'next' : 'previous',
    side: (flags & AFTER) === 0 ? 'before' : 'after',
    time: Number(bytes.readBigUInt64BE(START.time)),
    id: bytes.subarray(START.id, START.scope),
  };
}

/** Caches the hash, because each page decodes one cursor and encodes two cursors with the same scope. */
function createHashScope<Scope extends object>(toScopeValues: (scope: Scope) => readonly unknown[]) {
  const hashes = new WeakMap<Scope, Buffer>();
  return (scope: Scope): Buffer => {
    const cached = hashes.get(scope);
    if (cached !== undefined) return cached;
    // JSON delimits the values and distinguishes null from a string.
    const scopeHash = hash('sha256', JSON.stringify(toScopeValues(scope)), 'buffer').subarray(0, SCOPE_BYTES);
    hashes.set(scope, scopeHash);
    return scopeHash;
  };
}
