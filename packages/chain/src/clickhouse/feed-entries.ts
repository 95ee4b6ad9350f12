import { StoreFault } from '@playline/stores';
import { type Gap, isBeyond, START_GAP } from '../cursor.ts';
import type { FeedEntry, FeedPiece, FeedSource } from '../page.ts';
import type { PageQuery } from '../store.ts';
import { toFeedName, toTimeLiteral } from './literals.ts';
import { type QueryClient, type QuerySettings, TOO_MANY_ROWS } from './query-client.ts';

/** From `least`, inclusive, to `end`, exclusive; epoch microseconds. */
interface Window {
  readonly least: number;
  readonly end: number;
}

/** Selects entries of one feed in a window, up to the limit of the query, in its direction of reading. */
interface Selection {
  readonly query: PageQuery;
  readonly window: Window;
}

interface Selected {
  /** By selection, each in its direction of reading. */
  readonly entries: readonly (readonly FeedEntry[])[];
  /** Rows that ClickHouse has read for all selections together. */
  readonly readRows: number;
}

/** Runs several selections in one statement. @throws StoreFault */
async function selectEntries(
  run: QueryClient['query'],
  selections: readonly Selection[],
  settings: QuerySettings,
): Promise<Selected> {
  const { bytes, readRows } = await run(toStatement(selections), toParams(selections), settings);
  return { entries: readEntries(bytes, selections.length), readRows };
}

/** Time of the first entry from `edge` on; the horizon when there is none. */
async function findFirst(run: QueryClient['query'], query: PageQuery, edge: number): Promise<number> {
  const { bytes } = await run(
    `SELECT toUnixTimestamp64Micro(updated_at) FROM activity_feeds WHERE ${isOfFeed(0)} ` +
      `AND updated_at >= ${toTimeLiteral(edge)} ORDER BY ${FEED_ORDER.join(', ')} LIMIT 1 FORMAT RowBinary`,
    toParams([{ query }]),
    SETTINGS,
  );
  return bytes.length === 0 ? query.horizon : Math.min(query.horizon, new RowBinaryReader(bytes).int64());
}

/** Little is read of each part. Evaluating conditions or indexes first would take longer than reading it. */
const SETTINGS: QuerySettings = {
  max_threads: 1,
  // Small, so that reading in order can stop early.
  max_block_size: 256,
  // With buffering, each part would be read until it could fill the page alone.
  read_in_order_use_buffering: 0,
  // Merges the order of parts before it reads the text of rows: a third less work with fifty parts.
  read_in_order_two_level_merge_threshold: 1,
  optimize_move_to_prewhere: 0,
  use_skip_indexes_on_data_read: 0,
  output_format_parallel_formatting: 0,
};

/** The whole sorting key: without its beginning ClickHouse would sort a feed that is sorted already. */
const FEED_ORDER = ['feed', 'updated_at', 'id'];

function toStatement(selections: readonly Selection[]): string {
  const [only, ...others] = selections.map(toSelect);
  if (others.length === 0) return `${only} FORMAT RowBinary`;
  return `(${[only, ...others].join(') UNION ALL (')}) FORMAT RowBinary`;
}

/** Each row has the number of its selection: rows of several selections come mixed, but in order within a selection. */
function toSelect({ query, window }: Selection, place: number): string {
  const order = query.direction === 'next' ? '' : ' DESC';
  return (
    `SELECT ${place}, toUnixTimestamp64Micro(updated_at), toString(id), kafka_partition, ` +
    `superseded_at < ${toTimeLiteral(query.horizon)}, members FROM activity_feeds ` +
    `WHERE ${toConditions(query, window, place)} ` +
    `ORDER BY ${FEED_ORDER.map((column) => column + order).join(', ')} LIMIT ${query.limit}`
  );
}

function readEntries(bytes: Buffer, selections: number): FeedEntry[][] {
  const entries = Array.from({ length: selections }, (): FeedEntry[] => []);
  for (const reader = new RowBinaryReader(bytes); !reader.isAtEnd; ) {
    const own = entries[reader.uint8()]!;
    // Not with spread: that takes several times as long, and a page creates most of its objects here.
    const updatedAt = reader.int64();
    const id = reader.ascii();
    const partition = reader.uint16();
    const isOutdated = reader.uint8() === 1;
    own.push({ updatedAt, id, partition, isOutdated, members: reader.bytes() });
  }
  return entries;
}

const isOfFeed = (place: number) => `feed = {feed${place}: String}`;

const toParams = (selections: readonly Pick<Selection, 'query'>[]) =>
  Object.fromEntries(
    selections.map(({ query: { chain, filters } }, place) => [`feed${place}`, toFeedName(chain, filters)]),
  );

function toConditions({ filters }: PageQuery, { least, end }: Window, place: number): string {
  const { fromIndexedAt, toIndexedAt } = filters;
  return [
    isOfFeed(place),
    `updated_at >= ${toTimeLiteral(least)} AND updated_at < ${toTimeLiteral(end)}`,
    // A caller may give times before 1970, but there are no such activities.
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${toTimeLiteral(Math.max(0, fromIndexedAt))}`]),
    ...(toIndexedAt === null ? [] : [toIndexedAt < 0 ? 'false' : `indexed_at <= ${toTimeLiteral(toIndexedAt)}`]),
  ].join(' AND ');
}

/** Reads values of the format RowBinary one after the other. */
class RowBinaryReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** An Int64 that a number represents exactly. */
  int64(): number {
    const low = this.#bytes.readUInt32LE(this.#at);
    const high = this.#bytes.readInt32LE(this.#at + 4);
    this.#at += 8;
    return high * 2 ** 32 + low;
  }

  uint16(): number {
    this.#at += 2;
    return this.#bytes.readUInt16LE(this.#at - 2);
  }

  /** @throws RangeError behind the end */
  uint8(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError('RowBinary ends within a row');
    return byte;
  }

  /** A text that has only ASCII characters, such as that of a UUID. */
  ascii(): string {
    const from = this.#skipText();
    return this.#bytes.toString('latin1', from, this.#at);
  }

  /** The bytes of a text, without a copy. */
  bytes(): Buffer {
    const from = this.#skipText();
    return this.#bytes.subarray(from, this.#at);
  }

  /** @returns where the text begins; it ends at the new position of the reader */
  #skipText(): number {
    const length = this.#length();
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw new RangeError('a text of RowBinary ends behind its bytes');
    return from;
  }

  /** An unsigned LEB128: seven bits a byte, the lowest first. */
  #length(): number {
    let length = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.uint8();
      length += (byte & 127) * factor;
      if (byte < 128) return length;
    }
  }
}

/** The first window is this many times as wide as a page is expected to need, because feeds are uneven. */
const WIDE = 2;
const SECOND_US = 1_000_000;
/**
 * The feed is not sorted by `indexed_at`. If almost nothing passes the filter, every row of a window is read. So
 * windows grow only as far as their cost allows, and a page ends when it has read this many rows.
 */
const WINDOW_GROWTH_MAX = 32;
const READ_ROWS_MAX = 12_000;
/** A window with more rows is not read at all. This bounds, with the limit above, the rows that a page reads. */
const WINDOW_ROWS_MAX = 30_000;
/** For a range: rows in the first window, usually enough; and its length while the pace of the feed is unknown. */
const FIRST_ROWS = 15_000;
const FIRST_RANGE_US = 4 * 3_600 * SECOND_US;
/** Tolerance, because the times of indexing that sources give are inexact. */
const DAY_US = 86_400 * SECOND_US;

/**
 * Concurrent readers share one statement. ClickHouse evaluates its parts one after the other: more than four save
 * almost nothing, and the first reader waits for the last.
 */
const BATCHING = { sizeMax: 4, waitMaxMs: 10 };

/**
 * Creates the reader of entries of a feed. A query opens every table part that may overlap its window. So the first
 * window is as wide as recent pages of the feed, and the second is the whole rest, of which only a few rows per part
 * are read.
 */
export function createReadEntries({ query: run }: Pick<QueryClient, 'query'>): FeedSource['entries'] {
  const queryBatched = createQueryBatcher<Selection, readonly FeedEntry[]>({
    ...BATCHING,
    runAll: async (selections) => (await selectEntries(run, selections, SETTINGS)).entries,
  });
  const tools = { query: run, queryBatched, paces: createPaces() };
  return (query, limit) => (hasRange(query) ? readRange(tools, query, limit) : readInOrder(tools, query, limit));
}

interface Tools {
  readonly query: QueryClient['query'];
  readonly queryBatched: (selection: Selection) => Promise<readonly FeedEntry[]>;
  readonly paces: ReturnType<typeof createPaces>;
}

const hasRange = ({ filters }: PageQuery): boolean => filters.fromIndexedAt !== null || filters.toIndexedAt !== null;

async function readInOrder({ queryBatched, paces }: Tools, query: PageQuery, limit: number): Promise<FeedPiece> {
  const entries: FeedEntry[] = [];
  const pace = paces.of(query);
  // No row is ever added before the first one of a feed, so start there instead of at 1970.
  const isStart = query.direction === 'next' && query.gap.updatedAt === 0;
  let edge = isStart ? paces.firstOf(query) : startOf(query);
  const isKnown = pace !== null && edge > 0;
  let size = isKnown ? Math.max(SECOND_US, Math.ceil(pace * limit * WIDE)) : Number.POSITIVE_INFINITY;
  for (;;) {
    const window = windowAt(query, edge, size);
    if (window.least >= window.end) return { entries, isFull: false, continueAt: null };
    const asked = { ...query, limit: limit - entries.length };
    const piece = toPiece(asked, await queryBatched({ query: asked, window }));
    for (const each of piece.entries) entries.push(each);
    paces.learn(query, toPace(piece));
    if (isStart && edge === 0) paces.learnFirst(query, piece.entries[0]);
    if (piece.isFull) return { entries, isFull: true, continueAt: null };
    edge = farEdgeOf(query, window);
    size = Number.POSITIVE_INFINITY;
  }
}

/**
 * Reads activities that were indexed in a range. Before the range almost no row passes the filter, and its index skips
 * almost all, so this part is one window. Within the range almost every row passes. After it only updates pass, and
 * every row of a window is read.
 */
async function readRange({ query: run, paces }: Tools, query: PageQuery, limit: number): Promise<FeedPiece> {
  const entries: FeedEntry[] = [];
  const pace = paces.of(query);
  const sizeBehind = pace === null ? FIRST_RANGE_US : Math.max(SECOND_US, Math.ceil(pace * FIRST_ROWS));
  let edge = startOf(query);
  let isInFront = edge < (query.filters.fromIndexedAt ?? 0) - DAY_US;
  if (edge === 0 && !isInFront) edge = await findFirst(run, query, edge);
  let size = isInFront ? sizeInFront(query, edge) : sizeBehind;
  let growthMax = WINDOW_GROWTH_MAX;
  for (let read = 0; ; ) {
    const window = windowAt(query, edge, size);
    if (window.least >= window.end) return { entries, isFull: false, continueAt: null };
    // Within the range almost every row passes, so reading stops when the page is full, however many rows the window
    // has. A small window exceeds the limit only when there are many parts: one granule of each is read.
    const endsByItself = isInFront || window.end - window.least <= SECOND_US;
    const settings = endsByItself ? SETTINGS : BOUNDED_SETTINGS;
    const asked = { ...query, limit: limit - entries.length };
    const selected = await selectEntries(run, [{ query: asked, window }], settings).catch(toNullWhenTooMany);
    if (selected === null) {
      growthMax = 2;
      size = Math.ceil((window.end - window.least) / WINDOW_GROWTH_MAX);
      continue;
    }
    const { readRows } = selected;
    const piece = toPiece(asked, selected.entries[0]!);
    for (const each of piece.entries) entries.push(each);
    if (piece.isFull) return { entries, isFull: true, continueAt: null };
    read += readRows;
    edge = farEdgeOf(query, window);
    const isAtEnd = window.least === 0 || window.end === query.horizon;
    if (read >= READ_ROWS_MAX && !isAtEnd) return { entries, isFull: false, continueAt: toGapAt(query, edge) };
    if (!isInFront) paces.learn(query, (window.end - window.least) / Math.max(1, readRows));
    size = isInFront
      ? sizeBehind
      : Math.ceil((window.end - window.least) * Math.min(growthMax, toGrowth(read, readRows)));
    // Old activities may have been stored recently, so years without a row may follow: skip to the next row.
    if (isInFront && query.direction === 'next') edge = await findFirst(run, query, edge);
    isInFront = false;
  }
}

const startOf = ({ gap, direction, horizon }: PageQuery): number =>
  direction === 'next' ? gap.updatedAt : Math.min(gap.updatedAt + 1, horizon);

const windowAt = ({ direction, horizon }: PageQuery, edge: number, size: number): Window =>
  direction === 'next'
    ? { least: edge, end: Math.min(edge + size, horizon) }
    : { least: Math.max(edge - size, 0), end: edge };

const farEdgeOf = ({ direction }: PageQuery, { least, end }: Window): number => (direction === 'next' ? end : least);

const sizeInFront = ({ filters, horizon, direction }: PageQuery, edge: number): number =>
  direction === 'next' ? Math.max(DAY_US, (filters.toIndexedAt ?? horizon) + DAY_US - edge) : edge;

/** Null when the window had more rows than the limit; rethrows other faults. */
function toNullWhenTooMany(fault: unknown): null {
  if (fault instanceof StoreFault && fault.code === TOO_MANY_ROWS) return null;
  throw fault;
}

/**
 * Growth of the next window, so that it fits the rest if its rows are as dense. Never so small that reading would
 * stall.
 */
function toGrowth(read: number, last: number): number {
  if (last === 0) return WINDOW_GROWTH_MAX;
  return Math.min(WINDOW_GROWTH_MAX, Math.max(0, READ_ROWS_MAX - read) / last);
}

/** Most feeds whose pace is remembered. Any other starts with one window for everything. */
const FEEDS_MAX = 10_000;

/**
 * Remembers the pace of feeds: microseconds per entry, or in a range per row that was read. It is only a guess for the
 * width of the first window. The pace of a feed that did not fill a page is not remembered.
 */
function createPaces() {
  const known = new Map<string, number>();
  const firsts = new Map<string, number>();
  const nameOf = (query: PageQuery) => {
    const { chain, filters } = query;
    return `${toFeedName(chain, filters)} ${hasRange(query)}`;
  };
  return {
    /** Time of the first row of a feed; 0 while unknown. */
    firstOf: (query: PageQuery): number => firsts.get(nameOf(query)) ?? 0,
    learnFirst: (query: PageQuery, first: FeedEntry | undefined): void => {
      if (first !== undefined && firsts.size < FEEDS_MAX) firsts.set(nameOf(query), first.updatedAt);
    },
    of: (query: PageQuery): number | null => known.get(nameOf(query)) ?? null,
    learn: (query: PageQuery, paceUs: number | null): void => {
      const name = nameOf(query);
      known.delete(name);
      if (paceUs === null) return;
      known.set(name, paceUs);
      if (known.size > FEEDS_MAX) known.delete(known.keys().next().value!);
    },
  };
}

function toPace({ entries, isFull }: Pick<FeedPiece, 'entries' | 'isFull'>): number | null {
  const [first, last] = [entries[0], entries.at(-1)];
  if (!isFull || first === undefined || last === undefined) return null;
  return Math.abs(last.updatedAt - first.updatedAt) / entries.length;
}

/** The gap at the edge of a window, with the whole window on one side. */
const toGapAt = ({ direction }: PageQuery, edge: number): Gap =>
  direction === 'next'
    ? { side: 'after', updatedAt: edge - 1, id: LAST_ID }
    : { side: 'before', updatedAt: edge, id: START_GAP.id };
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Drops the rows before the gap. A condition on ids would keep ClickHouse from finding the gap by binary search, so a
 * few rows too many are read.
 */
const toPiece = (
  { gap, direction, limit }: PageQuery,
  selected: readonly FeedEntry[],
): Omit<FeedPiece, 'continueAt'> => ({
  entries: selected.filter((entry) => isBeyond(entry, gap, direction)),
  isFull: selected.length === limit,
});

/** Bounds the rows of a window for any range and any order of arrival. */
const BOUNDED_SETTINGS: QuerySettings = { ...SETTINGS, max_rows_to_read: WINDOW_ROWS_MAX };

/** How questions are batched. */
interface QueryBatcherOptions<Question, Answer> {
  /** Answers a batch, in the order of its questions. */
  readonly runAll: (questions: readonly Question[]) => Promise<readonly Answer[]>;
  /** Most questions of a batch. */
  readonly sizeMax: number;
  /** Most milliseconds that a query waits for others. */
  readonly waitMaxMs: number;
}

interface WaitingQuery<Question, Answer> {
  readonly query: Question;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Creates a function that asks questions in batches, so that the cost of a request is shared. While no batch is in
 * flight, a query is sent at once, with others of the same moment. Otherwise it waits until the batch is full,
 * nothing is in flight, or `waitMaxMs` is over. Each caller gets the result that it would get alone: if a batch fails,
 * each of its questions is asked separately.
 */
export function createQueryBatcher<Question, Answer>(
  options: QueryBatcherOptions<Question, Answer>,
): (query: Question) => Promise<Answer> {
  const turns = new QueryBatcher(options);
  return (query) => turns.query(query);
}

class QueryBatcher<Question, Answer> {
  readonly #options: QueryBatcherOptions<Question, Answer>;
  #waiting: WaitingQuery<Question, Answer>[] = [];
  #underWay = 0;
  #isLooking = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: QueryBatcherOptions<Question, Answer>) {
    this.#options = options;
  }

  query(query: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ query, resolve, reject });
      if (this.#isLooking) return;
      this.#isLooking = true;
      // Runs after all events that have arrived by now.
      setImmediate(() => {
        this.#isLooking = false;
        this.#look();
      });
    });
  }

  #look(): void {
    const { sizeMax, waitMaxMs } = this.#options;
    while (this.#waiting.length >= sizeMax || (this.#waiting.length > 0 && this.#underWay === 0)) this.#send();
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#send(), waitMaxMs);
  }

  #send(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#underWay++;
    void this.#answer(this.#waiting.splice(0, this.#options.sizeMax)).finally(() => {
      this.#underWay--;
      this.#look();
    });
  }

  async #answer(together: readonly WaitingQuery<Question, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.runAll(together.map(({ query }) => query));
      for (const [place, { resolve }] of together.entries()) resolve(answers[place] as Answer);
    } catch (fault) {
      if (together.length > 1) await Promise.all(together.map((each) => this.#answer([each])));
      else for (const { reject } of together) reject(fault);
    }
  }
}
