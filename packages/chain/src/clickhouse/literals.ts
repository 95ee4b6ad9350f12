import { isUuidText } from '@playline/contracts';

const US_PER_S = 1_000_000;
const US_DIGITS = 6;
/** ClickHouse parses fewer than ten digits as a date. */
const S_DIGITS = 10;

/** @throws RangeError unless the id is a UUID, because the literal is inserted into a statement */
export function toUuidLiteral(id: string): string {
  if (!isUuidText(id)) throw new RangeError('an id is not a UUID');
  return `'${id}'`;
}

/** Formats epoch microseconds as decimal seconds, which ClickHouse compares without a conversion. @throws RangeError */
export function toTimeLiteral(us: number): string {
  if (!Number.isSafeInteger(us) || us < 0) throw new RangeError('a time is not a whole number of microseconds');
  const fraction = String(us % US_PER_S).padStart(US_DIGITS, '0');
  return `'${String(Math.floor(us / US_PER_S)).padStart(S_DIGITS, '0')}.${fraction}'`;
}

/** Twice as fast as a condition on time and id, but also matches other rows with the same microsecond. */
export function toTimesCondition(times: readonly number[]): string {
  return `updated_at IN (${[...new Set(times)].map(toTimeLiteral).join(', ')})`;
}

/** A null filter matches any value. */
interface FeedFilters {
  readonly contractAddress: string | null;
  readonly type: string | null;
}

/** Joins chain, lower-case contract and type (`*` for any). The SQL that backfills tables builds the same names. */
export const toFeedName = (chain: string, { contractAddress, type }: FeedFilters): string =>
  `${chain} ${contractAddress ?? '*'} ${type ?? '*'}`;

export function feedNamesOf(activity: { chain: string; contractAddress: string; type: string }): string[] {
  const { chain, contractAddress, type } = activity;
  return [null, contractAddress].flatMap((contract) =>
    [null, type].map((each) => toFeedName(chain, { contractAddress: contract, type: each })),
  );
}
