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
import type { ReadHorizon } from '../../horizons.ts';
import {
  ADDRESS,
  createParameterError,
  createParameters,
  PAGE_SIZE,
  PAGE_SIZE_TYPE,
  type Parameters,
  type ParamType,
} from '../../parameters.ts';
import { CACHE_HEADERS, type ChainRead } from '../chain-route.ts';

export interface HistoryParts {
  store: Pick<ChainStore, 'readPage'>;
  cursors: Cursors;
  readHorizon: ReadHorizon;
  deadlineMs: number;
}

type RequestedPage = Omit<PageQuery, 'horizon'>;

/** GET activity-history */
export function createHistoryRead({ store, cursors, readHorizon, deadlineMs }: HistoryParts): ChainRead {
  const readers = createReaderCount();
  const horizonAt = async (query: RequestedPage, chain: Chain, isShared: boolean): Promise<number> => {
    // A signed cursor proves that the feed is complete up to its position, even if this process has a lower watermark.
    const current = await readHorizon(chain.partition, isShared);
    if (current === null && query.direction === 'next')
      // An empty page would mean the end of the history.
      throw new Error(`No watermark is known for partition ${chain.partition}.`);
    return Math.max(current ?? 0, toHorizon(query.gap.updatedAt));
  };
  const readPage = async (query: RequestedPage, chain: Chain): Promise<ActivityPage> => {
    const isShared = readers.areConcurrent();
    const horizon = await horizonAt(query, chain, isShared);
    const page = await store.readPage({ ...query, horizon });
    assertPartition(page, chain);
    // A short page may be the last one, so it must contain everything published before the request.
    if (!isShared || query.direction === 'previous' || page.rows.length >= query.limit) return page;
    const latest = await horizonAt(query, chain, false);
    if (latest === horizon) return page;
    const complete = await store.readPage({ ...query, horizon: latest });
    assertPartition(complete, chain);
    return complete;
  };
  return {
    path: '/activity-history',
    handle: async (exchange, chain) => {
      let scope: CursorScope | null = null;
      const query = parseHistoryQuery(exchange.request.url ?? '', (text, filters) => {
        scope = { chain: chain.name, filters };
        const cursor = cursors.decode(text, scope);
        return cursor.ok ? cursor.position : null;
      });
      readers.enter();
      const reading = readPage({ ...query, chain: chain.name }, chain).finally(readers.leave);
      const page = await settleWithin(deadlineMs, reading);
      // Cursors use the identity of `scope` as cache key.
      scope ??= { chain: chain.name, filters: query.filters };
      const chainJson = JSON.stringify({ id: chain.id, name: chain.name });
      const pageJson = JSON.stringify({
        previous_cursor: cursors.encode({ direction: 'previous', gap: page.previous }, scope),
        next_cursor: cursors.encode({ direction: 'next', gap: page.next }, scope),
      });
      exchange.answerBytes(200, toPageBody(page.rows, chainJson, pageJson), CACHE_HEADERS);
    },
  };
}

/** Concurrent readers share a statement and request their next pages almost immediately. */
const CONCURRENT_FOR_MS = 50;

/** Detects concurrent reads, including those that have just ended. */
function createReaderCount() {
  let active = 0;
  let lastAtMs = Number.NEGATIVE_INFINITY;
  return {
    enter: (): void => {
      active++;
      if (active > 1) lastAtMs = performance.now();
    },
    leave: (): void => void active--,
    areConcurrent: (): boolean => performance.now() - lastAtMs < CONCURRENT_FOR_MS,
  };
}

/** The watermark covers only one partition, so rows in other partitions could be missed. @throws Error */
function assertPartition({ rows }: ActivityPage, { name, partition }: Chain): void {
  const misplaced = rows.find((row) => row.partition !== partition);
  if (misplaced !== undefined)
    throw new Error(
      `Activities of ${name} are in partition ${misplaced.partition} instead of ${partition}. Set ACTIVITY_PARTITIONS to the partition count of the topic.`,
    );
}

export interface HistoryQuery extends CursorPosition {
  readonly filters: ActivityFilters;
  readonly limit: number;
}

/** Returns null for a cursor with an invalid signature or different filters. */
export type FindPosition = (text: string, filters: ActivityFilters) => CursorPosition | null;

const FIRST_PAGE: CursorPosition = { direction: 'next', gap: START_GAP };

/** Both names filter by `indexed_at`: see "Parameters of a history" in the contract. */
const FROM = ['from_updated_at', 'from_indexed_at'] as const;
const TO = ['to_updated_at', 'to_indexed_at'] as const;

const SUB_MICROSECOND = /\.\d{6}0*[1-9]/;
const TIME_EXPECTED =
  'an ISO 8601 time in UTC with at most nine fractional digits, such as 2026-01-31T12:00:00.000000Z';

/** Rounds up to a microsecond. */
const LOWER_BOUND: ParamType<number> = {
  expected: TIME_EXPECTED,
  parse: (text) => toMicros(text, SUB_MICROSECOND.test(text) ? 1 : 0),
};
/** Rounds down to a microsecond. */
const UPPER_BOUND: ParamType<number> = { expected: TIME_EXPECTED, parse: (text) => toMicros(text, 0) };

const TYPE: ParamType<ActivityType> = {
  expected: `one of ${ACTIVITY_TYPES.join(', ')}`,
  parse: (text) => ACTIVITY_TYPES.find((type) => type === text) ?? null,
};

/** Ignores unknown parameters. @throws PublicError VALIDATION_ERROR that lists all invalid parameters */
export function parseHistoryQuery(target: string, findPosition: FindPosition): HistoryQuery {
  const parameters = createParameters(parseQuery(target));
  const filters = readFilters(parameters);
  const areFiltersValid = parameters.errors.length === 0;
  const limit = parameters.read('page_size', PAGE_SIZE_TYPE) ?? PAGE_SIZE;
  // A cursor can be checked only against valid filters.
  const position = areFiltersValid ? parameters.read('page_cursor', cursorOf(filters, findPosition)) : null;
  if (parameters.errors.length > 0) throw createParameterError(parameters.errors);
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

function cursorOf(filters: ActivityFilters, findPosition: FindPosition): ParamType<CursorPosition> {
  return {
    expected: 'a cursor from an earlier page for this chain with the same filters',
    parse: (text) => findPosition(text, filters),
  };
}

/** Clamps times to just outside the range that can be stored. */
function toMicros(text: string, offset: number): number | null {
  const micros = parseTimestampMicros(text) + offset;
  return Number.isNaN(micros) ? null : Math.min(Math.max(micros, -1), MICROSECONDS_MAX + 1);
}
