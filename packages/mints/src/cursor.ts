import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { MintStatus } from '@playline/contracts';
import type { MintCollection } from './asset.ts';
import type { MintPageQuestion } from './store.ts';

/** A secret that cursors are signed with. */
export interface MintCursorKey {
  /** 0 to 255. Every cursor contains the id of its key. */
  readonly id: number;
  /** At least 32 bytes. */
  readonly secret: Buffer;
}

/** The query that a cursor belongs to. It is valid for no other. */
export interface MintCursorScope {
  readonly collection: MintCollection;
  readonly status: MintStatus | null;
}

/** Where to continue, and in which direction. */
export type MintCursorPlace = Pick<MintPageQuestion, 'gap' | 'direction'>;

export interface MintCursors {
  /** A text that is safe in a URL. */
  encode(place: MintCursorPlace, scope: MintCursorScope): string;
  /** Null for a text that was not signed here, was changed, or belongs to another query. Never throws. */
  decode(text: string, scope: MintCursorScope): MintCursorPlace | null;
}

const VERSION = 1;
const SCOPE_BYTES = 16;
const MAC_BYTES = 16;
const AT = { keyId: 1, flags: 2, requestedAt: 3, attemptId: 11, scope: 27, mac: 43 } as const;
const CURSOR_BYTES = AT.mac + MAC_BYTES;
/** Flags: the direction, and the side of the position on which the gap is. */
const PREVIOUS = 1;
const AFTER = 2;
/** Part of the signed text, because other kinds of cursors are signed with the same keys. */
const PURPOSE = 'mint-requests';

/** Creates the codec of cursors. The first key signs; all are accepted. */
export function createMintCursors({ keys }: { keys: readonly [MintCursorKey, ...MintCursorKey[]] }): MintCursors {
  const keyOf = new Map(keys.map(({ id, secret }) => [id, createSecretKey(secret)]));
  const signingKey = keyOf.get(keys[0].id)!;
  return {
    encode: ({ gap, direction }, scope) => {
      const bytes = Buffer.alloc(CURSOR_BYTES);
      bytes[0] = VERSION;
      bytes[AT.keyId] = keys[0].id;
      bytes[AT.flags] = (direction === 'previous' ? PREVIOUS : 0) | (gap.side === 'after' ? AFTER : 0);
      bytes.writeBigUInt64BE(BigInt(gap.requestedAt), AT.requestedAt);
      Buffer.from(gap.attemptId, 'hex').copy(bytes, AT.attemptId);
      hashScope(scope).copy(bytes, AT.scope);
      sign(bytes, signingKey).copy(bytes, AT.mac);
      return bytes.toString('base64url');
    },
    decode: (text, scope) => {
      const bytes = Buffer.from(text, 'base64url');
      // Accepts only one spelling of each cursor, so that cursors can be compared as texts.
      if (bytes.length !== CURSOR_BYTES || bytes.toString('base64url') !== text) return null;
      const key = keyOf.get(bytes[AT.keyId]!);
      if (key === undefined || !timingSafeEqual(sign(bytes, key), bytes.subarray(AT.mac))) return null;
      if (bytes[0] !== VERSION || !hashScope(scope).equals(bytes.subarray(AT.scope, AT.mac))) return null;
      return toPlace(bytes);
    },
  };
}

function toPlace(bytes: Buffer): MintCursorPlace {
  const flags = bytes[AT.flags]!;
  return {
    direction: (flags & PREVIOUS) === 0 ? 'next' : 'previous',
    gap: {
      side: (flags & AFTER) === 0 ? 'before' : 'after',
      requestedAt: Number(bytes.readBigUInt64BE(AT.requestedAt)),
      attemptId: bytes.toString('hex', AT.attemptId, AT.scope),
    },
  };
}

function sign(bytes: Buffer, key: KeyObject): Buffer {
  const mac = createHmac('sha256', key).update(PURPOSE).update(bytes.subarray(0, AT.mac));
  return mac.digest().subarray(0, MAC_BYTES);
}

/** JSON, because it separates the members and tells null from any text. */
function hashScope({ collection, status }: MintCursorScope): Buffer {
  const text = JSON.stringify([collection.chain, collection.contractAddress, status]);
  return hash('sha256', text, 'buffer').subarray(0, SCOPE_BYTES);
}
