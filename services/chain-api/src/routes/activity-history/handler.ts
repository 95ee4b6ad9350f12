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

/** GET activity-history: changes in the order of `updated_at`. */
export function createHistoryRead({ store, cursors, horizonOf, deadlineMs }: HistoryParts): ChainRead {
  const readers = createReaderCount();
  const horizonAt = async (query: RequestedPage, chain: Chain, isShared: boolean): Promise<number> => {
    // A signed cursor proves that the feed is complete up to it, also if this process knows a lower watermark.
    const known = await horizonOf(chain.partition, isShared);
    if (known === null && query.direction === 'next')
      // An empty page would look like the end of the history.
      throw new Error(`no watermark is known for partition ${chain.partition} is known`);
    return Math.max(known ?? 0, toHorizon(query.gap.updatedAt));
  };
  const readPage = async (query: RequestedPage, chain: Chain): Promise<ActivityPage> => {
    const isShared = readers.areConcurrent();
    const horizon = await horizonAt(query, chain, isShared);
    const page = await store.readPage({ ...query, horizon });
    assertOfPartition(page, chain);
    // A page that is not full is read as the end: it must have everything published before the request.
    if (!isShared || query.direction === 'previous' || page.rows.length >= query.limit) return page;
    const latest = await horizonAt(query, chain, false);
    if (latest === horizon) return page;
    const again = await store.readPage({ ...query, horizon: latest });
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
      readers.enter();
      const reading = readPage({ ...query, chain: chain.name }, chain).finally(readers.leave);
      const page = await settleWithin(deadlineMs, reading);
      // Cursors cache by this object.
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

/** Readers of a shared statement send their next requests a moment later. */
const CONCURRENT_FOR_MS = 50;

/** Whether several pages are being read, or were a moment ago. */
function createReaderCount() {
  let underWay = 0;
  let lastAtMs = Number.NEGATIVE_INFINITY;
  return {
    enter: (): void => {
      underWay++;
      if (underWay > 1) lastAtMs = performance.now();
    },
    leave: (): void => void underWay--,
    areConcurrent: (): boolean => performance.now() - lastAtMs < CONCURRENT_FOR_MS,
  };
}

/** Rows of another partition could be missed. @throws Error */
function assertOfPartition({ rows }: ActivityPage, { name, partition }: Chain): void {
  const other = rows.find((row) => row.partition !== partition);
  if (other !== undefined)
    throw new Error(
      `activities of ${name} are in partition ${other.partition} and not in ${partition}: is ACTIVITY_PARTITIONS what the topic has?`,
    );
}

export interface HistoryQuery extends CursorPosition {
  readonly filters: ActivityFilters;
  readonly limit: number;
}

/** null when its signature or filters differ. */
export type FindPosition = (text: string, filters: ActivityFilters) => CursorPosition | null;

const FIRST_PAGE: CursorPosition = { direction: 'next', gap: START_GAP };

/** Both bound `indexed_at`: contract, "Parameters of a history". */
const FROM = ['from_updated_at', 'from_indexed_at'] as const;
const TO = ['to_updated_at', 'to_indexed_at'] as const;

const FINER = /\.\d{6}0*[1-9]/;
const TIME_EXPECTED =
  'an ISO 8601 time in UTC with at most nine fractional digits, such as 2026-01-31T12:00:00.000000Z';

/** The first microsecond not before the time. */
const LOWER_BOUND: Kind<number> = {
  expected: TIME_EXPECTED,
  parse: (text) => toMicros(text, FINER.test(text) ? 1 : 0),
};
/** The last microsecond not after the time. */
const UPPER_BOUND: Kind<number> = { expected: TIME_EXPECTED, parse: (text) => toMicros(text, 0) };

const TYPE: Kind<ActivityType> = {
  expected: `one of ${ACTIVITY_TYPES.join(', ')}`,
  parse: (text) => ACTIVITY_TYPES.find((type) => type === text) ?? null,
};

/** Unknown parameters are ignored. @throws PublicError VALIDATION_ERROR with all faults */
export function parseHistoryQuery(target: string, findPosition: FindPosition): HistoryQuery {
  const parameters = createParameters(parseQuery(target));
  const filters = readFilters(parameters);
  const areFiltersRight = parameters.faults.length === 0;
  const limit = parameters.read('page_size', PAGE_SIZE_KIND) ?? PAGE_SIZE;
  // Only valid filters can be compared with those of a cursor.
  const position = areFiltersRight ? parameters.read('page_cursor', cursorOf(filters, findPosition)) : null;
  if (parameters.faults.length > 0) throw invalidParameters(parameters.faults);
  return { filters, limit, ...(position ?? FIRST_PAGE) };
}

function readFilters({ read, readEither }: Parameters): ActivityFilters {
  return {
    fromIndexedAt: readEither(FROM, LOWER_BOUND),
    toIndexedAt: readEither(TO, UPPER_BOUND),
    contractAddress: read('contract_address', ADDRESS),
    type: read('activity_type', TYPE),
  };
}

function cursorOf(filters: ActivityFilters, findPosition: FindPosition): Kind<CursorPosition> {
  return {
    expected: 'a cursor of an earlier page of this chain with the same filters',
    parse: (text) => findPosition(text, filters),
  };
}

/** Times outside of the stored range become the nearest value outside. */
function toMicros(text: string, add: number): number | null {
  const micros = parseTimestampMicros(text) + add;
  return Number.isNaN(micros) ? null : Math.min(Math.max(micros, -1), MICROSECONDS_MAX + 1);
}
