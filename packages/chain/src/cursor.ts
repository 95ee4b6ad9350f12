import {
  type CursorKey,
  createSignedCursors,
  type Direction,
  fromUuidText,
  type GapSide,
  isBeyondGap,
  type SignedCursorResult,
  toUuidText,
} from '@playline/contracts';
import { compareUuids } from '@playline/stores';
import type { ActivityFilters } from './store.ts';

/** A version's sort key within its chain. */
export interface Position {
  /** Epoch microseconds below 2^53 (the year 2255), never a Date. */
  readonly updatedAt: number;
  /** Lower case. */
  readonly id: string;
}

/** A gap before or after a position. An activity need not exist at the position. */
export interface Gap extends Position {
  readonly side: GapSide;
}

/** The Avro codec rejects 2^53 - 1 and larger values. */
export const MICROSECONDS_MAX: number = Number.MAX_SAFE_INTEGER - 1;

export const START_GAP: Gap = { side: 'before', updatedAt: 0, id: '00000000-0000-0000-0000-000000000000' };

/** Compares positions in the order that every store uses. */
export function comparePositions(a: Position, b: Position): number {
  return a.updatedAt === b.updatedAt ? compareUuids(a.id, b.id) : a.updatedAt - b.updatedAt;
}

export function isBeyond(position: Position, gap: Gap, direction: Direction): boolean {
  return isBeyondGap(comparePositions(position, gap), gap.side, direction);
}

export function toGap({ updatedAt, id }: Position, side: Gap['side']): Gap {
  return { side, updatedAt, id };
}

/** The query for which a cursor is valid. */
export interface CursorScope {
  readonly chain: string;
  readonly filters: ActivityFilters;
}

export interface CursorPosition {
  readonly gap: Gap;
  readonly direction: Direction;
}

export type ReadCursor =
  | { readonly ok: true; readonly position: CursorPosition }
  | Extract<SignedCursorResult, { readonly ok: false }>;

export interface Cursors {
  encode(position: CursorPosition, scope: CursorScope): string;
  /** Never throws. */
  decode(text: string, scope: CursorScope): ReadCursor;
}

/** @throws RangeError for unusable keys */
export function createCursors({ keys }: { keys: readonly CursorKey[] }): Cursors {
  // The purpose is empty, so that cursors issued before purposes were introduced remain valid.
  const cursors = createSignedCursors({ keys, purpose: '', timeMax: MICROSECONDS_MAX, toScopeValues });
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

function toScopeValues({ chain, filters }: CursorScope) {
  const { fromIndexedAt, toIndexedAt, contractAddress, type } = filters;
  return [chain, fromIndexedAt, toIndexedAt, contractAddress, type];
}
