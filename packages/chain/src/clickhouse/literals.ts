import type { Position } from '../position.ts';
import { isUuidText } from '../texts.ts';

/** A UUID as a literal. @throws RangeError for any other text: it goes into a statement as it is */
export function toUuidLiteral(id: string): string {
  if (!isUuidText(id)) throw new RangeError('an id is no UUID');
  return `'${id}'`;
}

function toWhole(us: number): string {
  if (!Number.isSafeInteger(us)) throw new RangeError('a time is no whole number of microseconds');
  return String(us);
}

/** Epoch microseconds as an expression of a time. @throws RangeError when they are no whole number */
export function toTimeLiteral(us: number): string {
  return `fromUnixTimestamp64Micro(${toWhole(us)}, 'UTC')`;
}

/**
 * The condition that finds rows at these positions, at least one: by their times alone, which is half the work of a
 * comparison of pairs. So it lets rows of the same microsecond through that were not asked for.
 */
export function toTimesCondition(positions: readonly Position[]): string {
  const times = [...new Set(positions.map(({ updatedAt }) => updatedAt))];
  return `toUnixTimestamp64Micro(updated_at) IN (${times.map(toWhole).join(', ')})`;
}
