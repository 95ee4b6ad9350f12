/**
 * Where a version of an activity stands among all of its chain. Microseconds are whole numbers below 2^53 (the year
 * 2255), never a Date, which would cut them off.
 */
export interface Position {
  /** Epoch microseconds. */
  readonly updatedAt: number;
  /** UUID in lower case. */
  readonly id: string;
}

/** A place between positions: before or after one. The position itself need not be there. */
export interface Gap extends Position {
  readonly side: 'before' | 'after';
}

/** Which way a page is read from its gap. Its rows are in ascending order either way. */
export type Direction = 'next' | 'previous';

/** Last time that is exact in code and in the log, whose codec takes one less than the greatest safe integer. */
export const MICROSECONDS_MAX: number = Number.MAX_SAFE_INTEGER - 1;

/** In front of everything. */
export const START_GAP: Gap = { side: 'before', updatedAt: 0, id: '00000000-0000-0000-0000-000000000000' };

/** ClickHouse compares the last eight bytes of a UUID first; the text's second half begins behind the third hyphen. */
const HALF_AT = 19;
const toSortable = (id: string) => id.slice(HALF_AT) + id.slice(0, HALF_AT);

/** Below zero when `a` stands before `b`, zero when they are the same position. The order of every store. */
export function comparePositions(a: Position, b: Position): number {
  if (a.updatedAt !== b.updatedAt) return a.updatedAt - b.updatedAt;
  const [left, right] = [toSortable(a.id), toSortable(b.id)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Whether a position lies behind a gap in the direction of reading. */
export function isBeyond(position: Position, gap: Gap, direction: Direction): boolean {
  const order = comparePositions(position, gap);
  if (order === 0) return (gap.side === 'before') === (direction === 'next');
  return order > 0 === (direction === 'next');
}

/** The gap right before or right after a position. */
export function toGap({ updatedAt, id }: Position, side: Gap['side']): Gap {
  return { side, updatedAt, id };
}
