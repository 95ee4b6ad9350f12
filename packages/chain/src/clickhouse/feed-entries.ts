import { StoreFault } from '@playline/stores';
import type { FeedEntry, FeedPiece, FeedSource } from '../page.ts';
import { type Gap, isBeyond, START_GAP } from '../position.ts';
import type { PageQuestion } from '../store.ts';
import { toFeedName } from './feed-names.ts';
import { type QuestionSettings, type Questions, TOO_MANY_ROWS } from './questions.ts';
import { findFirst, SETTINGS, type Selection, selectEntries, type Window } from './selections.ts';
import { createTurns } from './turns.ts';

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
const TURNS = { sizeMax: 4, waitMaxMs: 10 };

/**
 * Creates the reader of entries of a feed. A query opens every table part that may overlap its window. So the first
 * window is as wide as recent pages of the feed, and the second is the whole rest, of which only a few rows per part
 * are read.
 */
export function createReadEntries({ ask }: Pick<Questions, 'ask'>): FeedSource['entries'] {
  const askInTurn = createTurns<Selection, readonly FeedEntry[]>({
    ...TURNS,
    askAll: async (selections) => (await selectEntries(ask, selections, SETTINGS)).entries,
  });
  const tools = { ask, askInTurn, paces: createPaces() };
  return (question, limit) =>
    hasRange(question) ? readRange(tools, question, limit) : readInOrder(tools, question, limit);
}

interface Tools {
  readonly ask: Questions['ask'];
  readonly askInTurn: (selection: Selection) => Promise<readonly FeedEntry[]>;
  readonly paces: ReturnType<typeof createPaces>;
}

const hasRange = ({ filters }: PageQuestion): boolean => filters.fromIndexedAt !== null || filters.toIndexedAt !== null;

async function readInOrder({ askInTurn, paces }: Tools, question: PageQuestion, limit: number): Promise<FeedPiece> {
  const entries: FeedEntry[] = [];
  const pace = paces.of(question);
  // No row is ever added before the first one of a feed, so start there instead of at 1970.
  const isStart = question.direction === 'next' && question.gap.updatedAt === 0;
  let edge = isStart ? paces.firstOf(question) : startOf(question);
  const isKnown = pace !== null && edge > 0;
  let size = isKnown ? Math.max(SECOND_US, Math.ceil(pace * limit * WIDE)) : Number.POSITIVE_INFINITY;
  for (;;) {
    const window = windowAt(question, edge, size);
    if (window.least >= window.end) return { entries, isFull: false, behind: null };
    const asked = { ...question, limit: limit - entries.length };
    const piece = toPiece(asked, await askInTurn({ question: asked, window }));
    for (const each of piece.entries) entries.push(each);
    paces.learn(question, toPace(piece));
    if (isStart && edge === 0) paces.learnFirst(question, piece.entries[0]);
    if (piece.isFull) return { entries, isFull: true, behind: null };
    edge = farEdgeOf(question, window);
    size = Number.POSITIVE_INFINITY;
  }
}

/**
 * Reads activities that were indexed in a range. Before the range almost no row passes the filter, and its index skips
 * almost all, so this part is one window. Within the range almost every row passes. After it only updates pass, and
 * every row of a window is read.
 */
async function readRange({ ask, paces }: Tools, question: PageQuestion, limit: number): Promise<FeedPiece> {
  const entries: FeedEntry[] = [];
  const pace = paces.of(question);
  const sizeBehind = pace === null ? FIRST_RANGE_US : Math.max(SECOND_US, Math.ceil(pace * FIRST_ROWS));
  let edge = startOf(question);
  let isInFront = edge < (question.filters.fromIndexedAt ?? 0) - DAY_US;
  if (edge === 0 && !isInFront) edge = await findFirst(ask, question, edge);
  let size = isInFront ? sizeInFront(question, edge) : sizeBehind;
  let growthMax = WINDOW_GROWTH_MAX;
  for (let read = 0; ; ) {
    const window = windowAt(question, edge, size);
    if (window.least >= window.end) return { entries, isFull: false, behind: null };
    // Within the range almost every row passes, so reading stops when the page is full, however many rows the window
    // has. A small window exceeds the limit only when there are many parts: one granule of each is read.
    const endsByItself = isInFront || window.end - window.least <= SECOND_US;
    const settings = endsByItself ? SETTINGS : BEHIND_SETTINGS;
    const asked = { ...question, limit: limit - entries.length };
    const selected = await selectEntries(ask, [{ question: asked, window }], settings).catch(toNullWhenTooMany);
    if (selected === null) {
      growthMax = 2;
      size = Math.ceil((window.end - window.least) / WINDOW_GROWTH_MAX);
      continue;
    }
    const { readRows } = selected;
    const piece = toPiece(asked, selected.entries[0]!);
    for (const each of piece.entries) entries.push(each);
    if (piece.isFull) return { entries, isFull: true, behind: null };
    read += readRows;
    edge = farEdgeOf(question, window);
    const isAtEnd = window.least === 0 || window.end === question.horizon;
    if (read >= READ_ROWS_MAX && !isAtEnd) return { entries, isFull: false, behind: toGapAt(question, edge) };
    if (!isInFront) paces.learn(question, (window.end - window.least) / Math.max(1, readRows));
    size = isInFront
      ? sizeBehind
      : Math.ceil((window.end - window.least) * Math.min(growthMax, toGrowth(read, readRows)));
    // Old activities may have been stored recently, so years without a row may follow: skip to the next row.
    if (isInFront && question.direction === 'next') edge = await findFirst(ask, question, edge);
    isInFront = false;
  }
}

const startOf = ({ gap, direction, horizon }: PageQuestion): number =>
  direction === 'next' ? gap.updatedAt : Math.min(gap.updatedAt + 1, horizon);

const windowAt = ({ direction, horizon }: PageQuestion, edge: number, size: number): Window =>
  direction === 'next'
    ? { least: edge, end: Math.min(edge + size, horizon) }
    : { least: Math.max(edge - size, 0), end: edge };

const farEdgeOf = ({ direction }: PageQuestion, { least, end }: Window): number => (direction === 'next' ? end : least);

const sizeInFront = ({ filters, horizon, direction }: PageQuestion, edge: number): number =>
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
  const nameOf = (question: PageQuestion) => {
    const { chain, filters } = question;
    return `${toFeedName(chain, filters)} ${hasRange(question)}`;
  };
  return {
    /** Time of the first row of a feed; 0 while unknown. */
    firstOf: (question: PageQuestion): number => firsts.get(nameOf(question)) ?? 0,
    learnFirst: (question: PageQuestion, first: FeedEntry | undefined): void => {
      if (first !== undefined && firsts.size < FEEDS_MAX) firsts.set(nameOf(question), first.updatedAt);
    },
    of: (question: PageQuestion): number | null => known.get(nameOf(question)) ?? null,
    learn: (question: PageQuestion, paceUs: number | null): void => {
      const name = nameOf(question);
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
const toGapAt = ({ direction }: PageQuestion, edge: number): Gap =>
  direction === 'next'
    ? { side: 'after', updatedAt: edge - 1, id: LAST_ID }
    : { side: 'before', updatedAt: edge, id: START_GAP.id };
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Drops the rows before the gap. A condition on ids would keep ClickHouse from finding the gap by binary search, so a
 * few rows too many are read.
 */
const toPiece = (
  { gap, direction, limit }: PageQuestion,
  selected: readonly FeedEntry[],
): Omit<FeedPiece, 'behind'> => ({
  entries: selected.filter((entry) => isBeyond(entry, gap, direction)),
  isFull: selected.length === limit,
});

/** Bounds the rows of a window for any range and any order of arrival. */
const BEHIND_SETTINGS: QuestionSettings = { ...SETTINGS, max_rows_to_read: WINDOW_ROWS_MAX };
