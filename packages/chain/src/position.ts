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
  readonly side: 'before' | 'after';
}

/** Direction in which a page is read from its gap. Its rows are in ascending order either way. */
export type Direction = 'next' | 'previous';

/** Last time that is exact both in code and in the log: the Avro codec refuses 2^53 - 1 and more. */
export const MICROSECONDS_MAX: number = Number.MAX_SAFE_INTEGER - 1;

/** Before every position. */
export const START_GAP: Gap = { side: 'before', updatedAt: 0, id: '00000000-0000-0000-0000-000000000000' };

/** ClickHouse compares the last eight bytes of a UUID first. In its text they begin after the third hyphen. */
const HALF_AT = 19;
const toSortable = (id: string) => id.slice(HALF_AT) + id.slice(0, HALF_AT);

/** Below zero when `a` comes before `b`, zero for the same position. Every store uses this order. */
export function comparePositions(a: Position, b: Position): number {
  if (a.updatedAt !== b.updatedAt) return a.updatedAt - b.updatedAt;
  const [left, right] = [toSortable(a.id), toSortable(b.id)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Whether a position lies beyond a gap in the direction of reading. */
export function isBeyond(position: Position, gap: Gap, direction: Direction): boolean {
  const order = comparePositions(position, gap);
  if (order === 0) return (gap.side === 'before') === (direction === 'next');
  return order > 0 === (direction === 'next');
}

/** The gap right before or right after a position. */
export function toGap({ updatedAt, id }: Position, side: Gap['side']): Gap {
  return { side, updatedAt, id };
}
