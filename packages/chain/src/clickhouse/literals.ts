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
 * The condition that a column has one of these times, at least one. Times alone are half the work of pairs of time and
 * id: rows of the same microsecond that were not asked for come with them.
 */
export function toTimesCondition(column: 'updated_at' | 'indexed_at', times: readonly number[]): string {
  return `toUnixTimestamp64Micro(${column}) IN (${[...new Set(times)].map(toWhole).join(', ')})`;
}
