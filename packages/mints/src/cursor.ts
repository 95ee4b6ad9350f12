import { type CursorKey, createSignedCursors, type MintStatus } from '@playline/contracts';
import type { MintCollection } from './asset.ts';
import type { MintPageQuestion } from './store.ts';

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

/** Creates the cursors of mint requests. @throws RangeError for keys that cannot be used */
export function createMintCursors({ keys }: { keys: readonly CursorKey[] }): MintCursors {
  const purpose = 'mint-requests';
  const cursors = createSignedCursors({ keys, purpose, timeMax: Number.MAX_SAFE_INTEGER, nameOf: toName });
  return {
    encode: ({ gap, direction }, scope) => {
      const id = Buffer.from(gap.attemptId, 'hex');
      return cursors.encode({ direction, side: gap.side, time: gap.requestedAt, id }, scope);
    },
    decode: (text, scope) => {
      const read = cursors.decode(text, scope);
      if (!read.ok) return null;
      const { direction, side, time, id } = read.place;
      return { direction, gap: { side, requestedAt: time, attemptId: id.toString('hex') } };
    },
  };
}

const toName = ({ collection, status }: MintCursorScope) => [collection.chain, collection.contractAddress, status];
