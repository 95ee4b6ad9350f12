import {
  type ActivityFilters,
  type ActivityPage,
  type ChainStore,
  type CursorPosition,
  type CursorScope,
  type Cursors,
  MICROSECONDS_MAX,
  type PageQuery,
  START_GAP,
  toHorizon,
  toPageBody,
} from '@playline/chain';
import { ACTIVITY_TYPES, type ActivityType, parseTimestampMicros } from '@playline/contracts';
import { parseQuery, settleWithin } from '@playline/http';
import type { Chain } from '../../chains.ts';
import type { HorizonOf } from '../../horizons.ts';
import {
  ADDRESS,
  createParameters,
  invalidParameters,
  type Kind,
  PAGE_SIZE,
  PAGE_SIZE_KIND,
  type Parameters,
} from '../../parameters.ts';
import { CACHE_HEADERS, type ChainRead } from '../chain-route.ts';

export interface HistoryParts {
  store: Pick<ChainStore, 'readPage'>;
  cursors: Cursors;
  horizonOf: HorizonOf;
  deadlineMs: number;
}

type RequestedPage = Omit<PageQuery, 'horizon'>;

/** Builds GET activity-history: a page of changes, in the order of `updated_at`. */
export function createHistoryRead({ store, cursors, horizonOf, deadlineMs }: HistoryParts): ChainRead {
  const company = createReaderCount();
  const horizonAt = async (question: RequestedPage, chain: Chain, hasCompany: boolean): Promise<number> => {
    // A cursor is signed, so the feed was complete up to its place when it was issued, and still is. This process may
    // know a lower watermark or none. Using only that one would silently leave out rows before the cursor.
    const known = await horizonOf(chain.partition, hasCompany);
    if (known === null && question.direction === 'next')
      // A page that ends here would look like the end of the history.
      throw new Error(`nobody has said yet how far partition ${chain.partition} is known`);
    return Math.max(known ?? 0, toHorizon(question.gap.updatedAt));
  };
  const readPage = async (question: RequestedPage, chain: Chain): Promise<ActivityPage> => {
    const hasCompany = company.isThere();
    const horizon = await horizonAt(question, chain, hasCompany);
    const page = await store.readPage({ ...question, horizon });
    assertOfPartition(page, chain);
    // A reader treats a page that is not full as the end, so it must have everything published before the request.
    if (!hasCompany || question.direction === 'previous' || page.rows.length >= question.limit) return page;
    const latest = await horizonAt(question, chain, false);
    if (latest === horizon) return page;
    const again = await store.readPage({ ...question, horizon: latest });
    assertOfPartition(again, chain);
    return again;
  };
  return {
    path: '/activity-history',
    answer: async (exchange, chain) => {
      let scope: CursorScope | null = null;
      const query = parseHistoryQuery(exchange.request.url ?? '', (text, filters) => {
        scope = { chain: chain.name, filters };
        const cursor = cursors.decode(text, scope);
        return cursor.ok ? cursor.position : null;
      });
      company.came();
      const reading = readPage({ ...query, chain: chain.name }, chain).finally(company.left);
      const page = await settleWithin(deadlineMs, reading);
      // The same object for all rows, because cursors cache by it.
      scope ??= { chain: chain.name, filters: query.filters };
      const shownChain = JSON.stringify({ id: chain.id, name: chain.name });
      const cursorsOf = JSON.stringify({
        previous_cursor: cursors.encode({ direction: 'previous', gap: page.previous }, scope),
        next_cursor: cursors.encode({ direction: 'next', gap: page.next }, scope),
      });
      exchange.answerBytes(200, toPageBody(page.rows, shownChain, cursorsOf), CACHE_HEADERS);
    },
  };
}

/** Readers who share a statement get answers at once and ask again a moment later. In between they still count. */
const CONCURRENT_FOR_MS = 50;

/** Knows whether several pages are being read at the same time, or were a moment ago. */
function createReaderCount() {
  let underWay = 0;
  let lastAtMs = Number.NEGATIVE_INFINITY;
  return {
    came: (): void => {
      underWay++;
      if (underWay > 1) lastAtMs = performance.now();
    },
    left: (): void => void underWay--,
    isThere: (): boolean => performance.now() - lastAtMs < CONCURRENT_FOR_MS,
  };
}

/**
 * Checks that all rows are of the horizon's partition, because rows of another one could be missed.
 * @throws Error when the setting of the number of partitions differs from the topic's
 */
function assertOfPartition({ rows }: ActivityPage, { name, partition }: Chain): void {
  const other = rows.find((row) => row.partition !== partition);
  if (other !== undefined)
    throw new Error(
      `activities of ${name} stand in partition ${other.partition} and not in ${partition}: is ACTIVITY_PARTITIONS what the topic has?`,
    );
}

/** The requested page of a chain's history. */
export interface HistoryQuery extends CursorPosition {
  readonly filters: ActivityFilters;
  readonly limit: number;
}

/** Finds the place of a cursor; null when its signature or its filters differ. */
export type FindPosition = (text: string, filters: ActivityFilters) => CursorPosition | null;

const FIRST_PAGE: CursorPosition = { direction: 'next', gap: START_GAP };

/** Both names bound `indexed_at`: contract, "Parameters of a history". */
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
/** The last whole microsecond that is not after the time. */
const UPPER_BOUND: Kind<number> = { expected: TIME_EXPECTED, parse: (text) => toMicros(text, 0) };

const TYPE: Kind<ActivityType> = {
  expected: `one of ${ACTIVITY_TYPES.join(', ')}`,
  parse: (text) => ACTIVITY_TYPES.find((type) => type === text) ?? null,
};

/**
 * Reads the query of a request target. Unknown parameters are ignored.
 * @throws PublicError VALIDATION_ERROR with all faults
 */
export function parseHistoryQuery(target: string, findPlace: FindPosition): HistoryQuery {
  const parameters = createParameters(parseQuery(target));
  const filters = readFilters(parameters);
  const areFiltersRight = parameters.faults.length === 0;
  const limit = parameters.read('page_size', PAGE_SIZE_KIND) ?? PAGE_SIZE;
  // A cursor belongs to filters, so it can be checked only if they are valid.
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

function cursorOf(filters: ActivityFilters, findPlace: FindPosition): Kind<CursorPosition> {
  return {
    expected: 'a cursor of a page of this chain with the same filters, as it was returned',
    parse: (text) => findPlace(text, filters),
  };
}

/** Stored times are from 1970 to `MICROSECONDS_MAX`. Times outside become the nearest value outside. */
function toMicros(text: string, add: number): number | null {
  const micros = parseTimestampMicros(text) + add;
  return Number.isNaN(micros) ? null : Math.min(Math.max(micros, -1), MICROSECONDS_MAX + 1);
}
