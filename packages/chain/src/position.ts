import { type Direction, type GapSide, isBeyondGap } from '@playline/contracts';
import { compareUuids } from '@playline/stores';

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
