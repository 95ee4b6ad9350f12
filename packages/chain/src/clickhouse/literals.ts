import type { Position } from '../position.ts';
import { isUuidText } from '../texts.ts';

/** A UUID as a literal. @throws RangeError for any other text: it goes into a statement as it is */
export function toUuidLiteral(id: string): string {
  if (!isUuidText(id)) throw new RangeError('an id is no UUID');
  return `'${id}'`;
}

/** Epoch microseconds as an expression of a time. @throws RangeError when they are no whole number */
export function toTimeLiteral(us: number): string {
  if (!Number.isSafeInteger(us)) throw new RangeError('a time is no whole number of microseconds');
  return `fromUnixTimestamp64Micro(${us}, 'UTC')`;
}

/** The condition that holds at these positions, at least one; `updated_at` alone bounds what is read. */
export function toPositionsCondition(positions: readonly Position[]): string {
  const times = positions.map(({ updatedAt }) => updatedAt);
  const [least, most] = times.reduce(
    ([low, high], us) => [Math.min(low!, us), Math.max(high!, us)],
    [Number.POSITIVE_INFINITY, 0],
  );
  const pairs = positions.map(({ updatedAt, id }) => `(${updatedAt}, ${toUuidLiteral(id)})`);
  return (
    `updated_at >= ${toTimeLiteral(least!)} AND updated_at <= ${toTimeLiteral(most!)} ` +
    `AND (toUnixTimestamp64Micro(updated_at), id) IN (${pairs.join(', ')})`
  );
}
