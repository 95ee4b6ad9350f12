import {
  type CursorKey,
  createSignedCursors,
  type Direction,
  fromUuidText,
  type GapSide,
  isBeyondGap,
  type ReadSignedCursor,
  toUuidText,
} from '@playline/contracts';
import { compareUuids } from '@playline/stores';
import type { ActivityFilters } from './store.ts';

/**
 * Sort key of a version within its chain. Microseconds are whole numbers below 2^53 (the year 2255), never a Date,
 * which has only milliseconds.
 */
export interface Position {
  /** Epoch microseconds. */
  readonly updatedAt: number;
  /** UUID in lower case. */
  readonly id: string;
}

/** A place between positions: before or after one, which need not exist. */
export interface Gap extends Position {
  readonly side: GapSide;
}

/** Last time that is exact both in code and in the log: the Avro codec refuses 2^53 - 1 and more. */
export const MICROSECONDS_MAX: number = Number.MAX_SAFE_INTEGER - 1;

/** Before every position. */
export const START_GAP: Gap = { side: 'before', updatedAt: 0, id: '00000000-0000-0000-0000-000000000000' };

/** Below zero when `a` comes before `b`, zero for the same position. Every store uses this order. */
export function comparePositions(a: Position, b: Position): number {
  return a.updatedAt === b.updatedAt ? compareUuids(a.id, b.id) : a.updatedAt - b.updatedAt;
}

/** Whether a position lies beyond a gap in the direction of reading. */
export function isBeyond(position: Position, gap: Gap, direction: Direction): boolean {
  return isBeyondGap(comparePositions(position, gap), gap.side, direction);
}

/** The gap right before or right after a position. */
export function toGap({ updatedAt, id }: Position, side: Gap['side']): Gap {
  return { side, updatedAt, id };
}

/** The query that a cursor belongs to. It is valid for no other. */
export interface CursorScope {
  /** Name of the chain. */
  readonly chain: string;
  readonly filters: ActivityFilters;
}

/** Where to continue, and in which direction. */
export interface CursorPosition {
  readonly gap: Gap;
  readonly direction: Direction;
}

/** The decoded cursor, or why it is refused. */
export type ReadCursor =
  | { readonly ok: true; readonly position: CursorPosition }
  | Extract<ReadSignedCursor, { readonly ok: false }>;

export interface Cursors {
  /** A text that is safe in a URL. */
  encode(place: CursorPosition, scope: CursorScope): string;
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
      const { direction, side, time, id } = read.position;
      return { ok: true, position: { direction, gap: { side, updatedAt: time, id: toUuidText(id) } } };
    },
  };
}

function toName({ chain, filters }: CursorScope) {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return [chain, fromIndexedAt, toIndexedAt, contractAddress, type];
}
