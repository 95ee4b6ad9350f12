import { StoreFault } from '@playline/stores';
import { type Gap, isBeyond, START_GAP } from '../cursor.ts';
import type { FeedChunk, FeedEntry, FeedSource } from '../page.ts';
import type { PageQuery } from '../store.ts';
import { toFeedName, toTimeLiteral } from './literals.ts';
import { type QueryClient, type QuerySettings, TOO_MANY_ROWS } from './query-client.ts';

/** From `start` inclusive to `end` exclusive, in epoch microseconds. */
interface Window {
  readonly start: number;
  readonly end: number;
}

interface Selection {
  readonly query: PageQuery;
  readonly window: Window;
}

/** @returns each selection's entries in its direction, and the number of rows read @throws StoreFault */
async function selectEntries(run: QueryClient['query'], selections: readonly Selection[], settings: QuerySettings) {
  const { bytes, readRows } = await run(toStatement(selections), toParams(selections), settings);
  return { entries: readEntries(bytes, selections.length), readRows };
}

/** Returns the time of the first entry at or after `edge`, or the horizon if there is no entry. */
async function findFirst(run: QueryClient['query'], query: PageQuery, edge: number): Promise<number> {
  const { bytes } = await run(
    `SELECT toUnixTimestamp64Micro(updated_at) FROM activity_feeds WHERE ${toFeedCondition(0)} ` +
      `AND updated_at >= ${toTimeLiteral(edge)} ORDER BY ${FEED_ORDER.join(', ')} LIMIT 1 FORMAT RowBinary`,
    toParams([{ query }]),
    SETTINGS,
  );
  return bytes.length === 0 ? query.horizon : Math.min(query.horizon, new RowBinaryReader(bytes).int64());
}

/** A page reads few rows per part, so evaluating conditions and indexes first would take longer. */
const SETTINGS: QuerySettings = {
  max_threads: 1,
  max_block_size: 256,
  // With buffering, ClickHouse would read a full page's rows from each part.
  read_in_order_use_buffering: 0,
  // Merges the sort keys before reading strings, which saves a third of the work with fifty parts.
  read_in_order_two_level_merge_threshold: 1,
  optimize_move_to_prewhere: 0,
  use_skip_indexes_on_data_read: 0,
  output_format_parallel_formatting: 0,
};

/** The whole sorting key: with only a prefix of the key, ClickHouse would sort the rows again. */
const FEED_ORDER = ['feed', 'updated_at', 'id'];

function toStatement(selections: readonly Selection[]): string {
  const [first, ...rest] = selections.map(toSelect);
  if (rest.length === 0) return `${first} FORMAT RowBinary`;
  return `(${[first, ...rest].join(') UNION ALL (')}) FORMAT RowBinary`;
}

/** The first column is the selection's index, because the response interleaves the rows of all selections. */
function toSelect({ query, window }: Selection, index: number): string {
  const order = query.direction === 'next' ? '' : ' DESC';
  return (
    `SELECT ${index}, toUnixTimestamp64Micro(updated_at), toString(id), kafka_partition, ` +
    `superseded_at < ${toTimeLiteral(query.horizon)}, members FROM activity_feeds ` +
    `WHERE ${toConditions(query, window, index)} ` +
    `ORDER BY ${FEED_ORDER.map((column) => column + order).join(', ')} LIMIT ${query.limit}`
  );
}

function readEntries(bytes: Buffer, selections: number): FeedEntry[][] {
  const entries = Array.from({ length: selections }, (): FeedEntry[] => []);
  for (const reader = new RowBinaryReader(bytes); !reader.isAtEnd; ) {
    const list = entries[reader.uint8()]!;
    // Spread syntax is several times slower, and most of a page's objects are created here.
    const updatedAt = reader.int64();
    const id = reader.ascii();
    const partition = reader.uint16();
    const isOutdated = reader.uint8() === 1;
    list.push({ updatedAt, id, partition, isOutdated, members: reader.bytes() });
  }
  return entries;
}

const toFeedCondition = (index: number) => `feed = {feed${index}: String}`;

const toParams = (selections: readonly Pick<Selection, 'query'>[]) =>
  Object.fromEntries(
    selections.map(({ query: { chain, filters } }, index) => [`feed${index}`, toFeedName(chain, filters)]),
  );

function toConditions({ filters }: PageQuery, { start, end }: Window, index: number): string {
  const { fromIndexedAt, toIndexedAt } = filters;
  return [
    toFeedCondition(index),
    `updated_at >= ${toTimeLiteral(start)} AND updated_at < ${toTimeLiteral(end)}`,
    // A bound may be before 1970.
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${toTimeLiteral(Math.max(0, fromIndexedAt))}`]),
    ...(toIndexedAt === null ? [] : [toIndexedAt < 0 ? 'false' : `indexed_at <= ${toTimeLiteral(toIndexedAt)}`]),
  ].join(' AND ');
}

class RowBinaryReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  /** Reads a value below 2^53. */
  int64(): number {
    const low = this.#bytes.readUInt32LE(this.#offset);
    const high = this.#bytes.readInt32LE(this.#offset + 4);
    this.#offset += 8;
    return high * 2 ** 32 + low;
  }

  uint16(): number {
    this.#offset += 2;
    return this.#bytes.readUInt16LE(this.#offset - 2);
  }

  uint8(): number {
    const byte = this.#bytes[this.#offset++];
    if (byte === undefined) throw new RangeError('RowBinary data ends within a row');
    return byte;
  }

  ascii(): string {
    const from = this.#skipString();
    return this.#bytes.toString('latin1', from, this.#offset);
  }

  bytes(): Buffer {
    const from = this.#skipString();
    return this.#bytes.subarray(from, this.#offset);
  }

  #skipString(): number {
    const length = this.#length();
    const from = this.#offset;
    this.#offset += length;
    if (this.#offset > this.#bytes.length) throw new RangeError('a RowBinary string exceeds the data');
    return from;
  }

  /** Reads a LEB128 number: seven bits per byte, least significant first. */
  #length(): number {
    let length = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.uint8();
      length += (byte & 127) * factor;
      if (byte < 128) return length;
    }
  }
}

/** Width of the first window in expected pages. Above 1 because activity is uneven. */
const WINDOW_PAGES = 2;
const SECOND_US = 1_000_000;
/** A range filter may match almost no rows, so window growth and rows per page are bounded. */
const WINDOW_GROWTH_MAX = 32;
const READ_ROWS_MAX = 12_000;
/** ClickHouse rejects a query that would read more rows; the next window is then smaller. */
const WINDOW_ROWS_MAX = 30_000;
/** The first window in a range: its expected rows, or its length if the feed's pace is not known yet. */
const FIRST_ROWS = 15_000;
const FIRST_RANGE_US = 4 * 3_600 * SECOND_US;
/** Tolerance for inexact `indexed_at`. */
const DAY_US = 86_400 * SECOND_US;

/** ClickHouse runs the SELECTs of a UNION ALL one after another, so larger batches save no time. */
const BATCHING = { sizeMax: 4, waitMaxMs: 10 };

/** Reads a feed's entries: first a window as wide as recent pages, then a second window for the rest. */
export function createReadEntries({ query: run }: Pick<QueryClient, 'query'>): FeedSource['entries'] {
  const queryBatched = createQueryBatcher<Selection, readonly FeedEntry[]>({
    ...BATCHING,
    runAll: async (selections) => (await selectEntries(run, selections, SETTINGS)).entries,
  });
  const dependencies = { query: run, queryBatched, paces: createPaces() };
  return (query, limit) =>
    hasRange(query) ? readRange(dependencies, query, limit) : readInOrder(dependencies, query, limit);
}

interface Dependencies {
  readonly query: QueryClient['query'];
  readonly queryBatched: (selection: Selection) => Promise<readonly FeedEntry[]>;
  readonly paces: ReturnType<typeof createPaces>;
}

const hasRange = ({ filters }: PageQuery): boolean => filters.fromIndexedAt !== null || filters.toIndexedAt !== null;

async function readInOrder({ queryBatched, paces }: Dependencies, query: PageQuery, limit: number): Promise<FeedChunk> {
  const entries: FeedEntry[] = [];
  const pace = paces.of(query);
  // Rows are never inserted before a feed's first row.
  const isStart = query.direction === 'next' && query.gap.updatedAt === 0;
  let edge = isStart ? paces.firstOf(query) : startOf(query);
  const isPaceKnown = pace !== null && edge > 0;
  let size = isPaceKnown ? Math.max(SECOND_US, Math.ceil(pace * limit * WINDOW_PAGES)) : Number.POSITIVE_INFINITY;
  for (;;) {
    const window = windowAt(query, edge, size);
    if (window.start >= window.end) return { entries, isFull: false, continueAt: null };
    const remaining = { ...query, limit: limit - entries.length };
    const chunk = toChunk(remaining, await queryBatched({ query: remaining, window }));
    for (const each of chunk.entries) entries.push(each);
    paces.record(query, toPace(chunk));
    if (isStart && edge === 0) paces.recordFirst(query, chunk.entries[0]);
    if (chunk.isFull) return { entries, isFull: true, continueAt: null };
    edge = farEdgeOf(query, window);
    size = Number.POSITIVE_INFINITY;
  }
}

/**
 * Reads a range of `indexed_at`. Before the range, the index skips almost all rows, so one window is enough. Within
 * the range, almost all rows match. After the range, only updates match, and all rows are read.
 */
async function readRange({ query: run, paces }: Dependencies, query: PageQuery, limit: number): Promise<FeedChunk> {
  const entries: FeedEntry[] = [];
  const pace = paces.of(query);
  const sizeInRange = pace === null ? FIRST_RANGE_US : Math.max(SECOND_US, Math.ceil(pace * FIRST_ROWS));
  let edge = startOf(query);
  let isBeforeRange = edge < (query.filters.fromIndexedAt ?? 0) - DAY_US;
  if (edge === 0 && !isBeforeRange) edge = await findFirst(run, query, edge);
  let size = isBeforeRange ? sizeBeforeRange(query, edge) : sizeInRange;
  let growthMax = WINDOW_GROWTH_MAX;
  for (let read = 0; ; ) {
    const window = windowAt(query, edge, size);
    if (window.start >= window.end) return { entries, isFull: false, continueAt: null };
    // Before the range, the index skips rows; a window of one second is always small enough.
    const isSelfLimiting = isBeforeRange || window.end - window.start <= SECOND_US;
    const settings = isSelfLimiting ? SETTINGS : BOUNDED_SETTINGS;
    const remaining = { ...query, limit: limit - entries.length };
    const selected = await selectEntries(run, [{ query: remaining, window }], settings).catch(toNullWhenTooMany);
    if (selected === null) {
      growthMax = 2;
      size = Math.ceil((window.end - window.start) / WINDOW_GROWTH_MAX);
      continue;
    }
    const { readRows } = selected;
    const chunk = toChunk(remaining, selected.entries[0]!);
    for (const each of chunk.entries) entries.push(each);
    if (chunk.isFull) return { entries, isFull: true, continueAt: null };
    read += readRows;
    edge = farEdgeOf(query, window);
    const isAtEnd = window.start === 0 || window.end === query.horizon;
    if (read >= READ_ROWS_MAX && !isAtEnd) return { entries, isFull: false, continueAt: toGapAt(query, edge) };
    if (!isBeforeRange) paces.record(query, (window.end - window.start) / Math.max(1, readRows));
    size = isBeforeRange
      ? sizeInRange
      : Math.ceil((window.end - window.start) * Math.min(growthMax, toGrowth(read, readRows)));
    // Old activities may have been stored recently: skip years without rows.
    if (isBeforeRange && query.direction === 'next') edge = await findFirst(run, query, edge);
    isBeforeRange = false;
  }
}

const startOf = ({ gap, direction, horizon }: PageQuery): number =>
  direction === 'next' ? gap.updatedAt : Math.min(gap.updatedAt + 1, horizon);

const windowAt = ({ direction, horizon }: PageQuery, edge: number, size: number): Window =>
  direction === 'next'
    ? { start: edge, end: Math.min(edge + size, horizon) }
    : { start: Math.max(edge - size, 0), end: edge };

const farEdgeOf = ({ direction }: PageQuery, { start, end }: Window): number => (direction === 'next' ? end : start);

const sizeBeforeRange = ({ filters, horizon, direction }: PageQuery, edge: number): number =>
  direction === 'next' ? Math.max(DAY_US, (filters.toIndexedAt ?? horizon) + DAY_US - edge) : edge;

function toNullWhenTooMany(fault: unknown): null {
  if (fault instanceof StoreFault && fault.code === TOO_MANY_ROWS) return null;
  throw fault;
}

/** Returns the growth factor at which the next window fits the remaining rows, assuming the same density. */
function toGrowth(read: number, last: number): number {
  if (last === 0) return WINDOW_GROWTH_MAX;
  return Math.min(WINDOW_GROWTH_MAX, Math.max(0, READ_ROWS_MAX - read) / last);
}

const FEEDS_MAX = 10_000;

/** Caches each feed's microseconds per entry (in a range, per row read) to estimate the first window. */
function createPaces() {
  const paces = new Map<string, number>();
  const firstTimes = new Map<string, number>();
  const nameOf = (query: PageQuery) => {
    const { chain, filters } = query;
    return `${toFeedName(chain, filters)} ${hasRange(query)}`;
  };
  return {
    /** Returns 0 if unknown. */
    firstOf: (query: PageQuery): number => firstTimes.get(nameOf(query)) ?? 0,
    recordFirst: (query: PageQuery, first: FeedEntry | undefined): void => {
      if (first !== undefined && firstTimes.size < FEEDS_MAX) firstTimes.set(nameOf(query), first.updatedAt);
    },
    of: (query: PageQuery): number | null => paces.get(nameOf(query)) ?? null,
    record: (query: PageQuery, paceUs: number | null): void => {
      const name = nameOf(query);
      paces.delete(name);
      if (paceUs === null) return;
      paces.set(name, paceUs);
      if (paces.size > FEEDS_MAX) paces.delete(paces.keys().next().value!);
    },
  };
}

function toPace({ entries, isFull }: Pick<FeedChunk, 'entries' | 'isFull'>): number | null {
  const [first, last] = [entries[0], entries.at(-1)];
  if (!isFull || first === undefined || last === undefined) return null;
  return Math.abs(last.updatedAt - first.updatedAt) / entries.length;
}

/** Returns a gap at the edge, with the whole window on one side. */
const toGapAt = ({ direction }: PageQuery, edge: number): Gap =>
  direction === 'next'
    ? { side: 'after', updatedAt: edge - 1, id: LAST_ID }
    : { side: 'before', updatedAt: edge, id: START_GAP.id };
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Drops rows before the gap here, because a condition on ids would prevent ClickHouse's binary search. */
const toChunk = (
  { gap, direction, limit }: PageQuery,
  selected: readonly FeedEntry[],
): Omit<FeedChunk, 'continueAt'> => ({
  entries: selected.filter((entry) => isBeyond(entry, gap, direction)),
  isFull: selected.length === limit,
});

const BOUNDED_SETTINGS: QuerySettings = { ...SETTINGS, max_rows_to_read: WINDOW_ROWS_MAX };

interface QueryBatcherOptions<Query, Result> {
  /** Returns results in the order of the queries. */
  readonly runAll: (queries: readonly Query[]) => Promise<readonly Result[]>;
  readonly sizeMax: number;
  readonly waitMaxMs: number;
}

interface WaitingQuery<Query, Result> {
  readonly query: Query;
  readonly resolve: (result: Result) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Batches queries to share the cost of a request. If no batch is in flight, a query is sent immediately together with
 * concurrent queries; otherwise it waits at most `waitMaxMs`. If a batch fails, each of its queries is retried alone.
 */
export function createQueryBatcher<Query, Result>({
  runAll,
  sizeMax,
  waitMaxMs,
}: QueryBatcherOptions<Query, Result>): (query: Query) => Promise<Result> {
  const waiting: WaitingQuery<Query, Result>[] = [];
  let inFlight = 0;
  let timer: NodeJS.Timeout | undefined;

  async function run(batch: readonly WaitingQuery<Query, Result>[]): Promise<void> {
    try {
      const results = await runAll(batch.map(({ query }) => query));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (fault) {
      if (batch.length > 1) await Promise.all(batch.map((each) => run([each])));
      else for (const { reject } of batch) reject(fault);
    }
  }

  function send(): void {
    clearTimeout(timer);
    timer = undefined;
    inFlight++;
    void run(waiting.splice(0, sizeMax)).finally(() => {
      inFlight--;
      sendDue();
    });
  }

  function sendDue(): void {
    while (waiting.length >= sizeMax || (waiting.length > 0 && inFlight === 0)) send();
    if (waiting.length > 0) timer ??= setTimeout(send, waitMaxMs);
  }

  let isScheduled = false;
  return (query) =>
    new Promise((resolve, reject) => {
      waiting.push({ query, resolve, reject });
      if (isScheduled) return;
      isScheduled = true;
      // Runs after all pending I/O events, so that concurrent queries share the batch.
      setImmediate(() => {
        isScheduled = false;
        sendDue();
      });
    });
}
