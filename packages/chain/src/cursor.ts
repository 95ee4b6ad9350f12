import {
  type CursorKey,
  createSignedCursors,
  type Direction,
  fromUuidText,
  type ReadSignedCursor,
  toUuidText,
} from '@playline/contracts';
import { type Gap, MICROSECONDS_MAX } from './position.ts';
import type { ActivityFilters } from './store.ts';

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
  | Extract<ReadSignedCursor, { readonly ok: false }>;

export interface Cursors {
  /** A text that is safe in a URL. */
  encode(place: CursorPlace, scope: CursorScope): string;
  /** Never throws, whatever text a client sent. */
  decode(text: string, scope: CursorScope): ReadCursor;
}

/** Creates the cursors of activities. @throws RangeError for keys that cannot be used */
export function createCursors({ keys }: { keys: readonly CursorKey[] }): Cursors {
  // They were the first kind of cursors, so they name no purpose.
  const cursors = createSignedCursors({ keys, purpose: '', timeMax: MICROSECONDS_MAX, nameOf: toName });
  return {
    encode: ({ gap, direction }, scope) =>
      cursors.encode({ direction, side: gap.side, time: gap.updatedAt, id: fromUuidText(gap.id) }, scope),
    decode: (text, scope) => {
      const read = cursors.decode(text, scope);
      if (!read.ok) return read;
      const { direction, side, time, id } = read.place;
      return { ok: true, place: { direction, gap: { side, updatedAt: time, id: toUuidText(id) } } };
    },
  };
}

function toName({ chain, filters }: CursorScope) {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return [chain, fromIndexedAt, toIndexedAt, contractAddress, type];
}
