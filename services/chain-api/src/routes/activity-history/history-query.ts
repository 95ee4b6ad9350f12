import { type ActivityFilters, type CursorPlace, MICROSECONDS_MAX, START_GAP } from '@playline/chain';
import { ACTIVITY_TYPES, type ActivityType, parseTimestampMicros } from '@playline/contracts';
import { parseQuery } from '@playline/http';
import {
  ADDRESS,
  createParameters,
  invalidParameters,
  type Kind,
  PAGE_SIZE,
  PAGE_SIZE_KIND,
  type Parameters,
} from '../../parameters.ts';

/** Which page of the history of a chain is asked for. */
export interface HistoryQuery extends CursorPlace {
  readonly filters: ActivityFilters;
  readonly limit: number;
}

/** The place that a cursor of these filters stands for; null when it is none of ours, or one of other filters. */
export type FindPlace = (text: string, filters: ActivityFilters) => CursorPlace | null;

const FIRST_PAGE: CursorPlace = { direction: 'next', gap: START_GAP };

/** Under both names the bounds are of `indexed_at`: contract, "Parameters of a history". */
const FROM = ['from_updated_at', 'from_indexed_at'] as const;
const TO = ['to_updated_at', 'to_indexed_at'] as const;

/** Digits finer than a microsecond that are not all zero. */
const FINER = /\.\d{6}0*[1-9]/;
const TIME_EXPECTED =
  'an ISO 8601 time in UTC with at most nine fractional digits, such as 2026-01-31T12:00:00.000000Z';

/** The first whole microsecond that is not before the time. */
const LOWER_BOUND: Kind<number> = {
  expected: TIME_EXPECTED,
  parse: (text) => toMicros(text, FINER.test(text) ? 1 : 0),
};
/** The last whole microsecond that is not behind the time. */
const UPPER_BOUND: Kind<number> = { expected: TIME_EXPECTED, parse: (text) => toMicros(text, 0) };

const TYPE: Kind<ActivityType> = {
  expected: `one of ${ACTIVITY_TYPES.join(', ')}`,
  parse: (text) => ACTIVITY_TYPES.find((type) => type === text) ?? null,
};

/**
 * Reads the query of a request target. Parameters that are not known are ignored, as everywhere.
 * @throws PublicError VALIDATION_ERROR with everything that is wrong
 */
export function parseHistoryQuery(target: string, findPlace: FindPlace): HistoryQuery {
  const parameters = createParameters(parseQuery(target));
  const filters = readFilters(parameters);
  const areFiltersRight = parameters.faults.length === 0;
  const limit = parameters.read('page_size', PAGE_SIZE_KIND) ?? PAGE_SIZE;
  // A cursor belongs to filters, so without knowing those nothing can be said of it.
  const place = areFiltersRight ? parameters.read('page_cursor', cursorOf(filters, findPlace)) : null;
  if (parameters.faults.length > 0) throw invalidParameters(parameters.faults);
  return { filters, limit, ...(place ?? FIRST_PAGE) };
}

function readFilters({ read, readEither }: Parameters): ActivityFilters {
  return {
    fromIndexedAt: readEither(FROM, LOWER_BOUND),
    toIndexedAt: readEither(TO, UPPER_BOUND),
    contractAddress: read('contract_address', ADDRESS),
    type: read('activity_type', TYPE),
  };
}

function cursorOf(filters: ActivityFilters, findPlace: FindPlace): Kind<CursorPlace> {
  return {
    expected: 'a cursor of a page of this chain with the same filters, as it was returned',
    parse: (text) => findPlace(text, filters),
  };
}

/** Stored times lie from 1970 to `MICROSECONDS_MAX`; what lies outside is brought to just outside. */
function toMicros(text: string, add: number): number | null {
  const micros = parseTimestampMicros(text) + add;
  return Number.isNaN(micros) ? null : Math.min(Math.max(micros, -1), MICROSECONDS_MAX + 1);
}
