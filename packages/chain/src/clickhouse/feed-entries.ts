import { StoreFault } from '@playline/errors';
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
 * Times of indexing are in no order. If nearly nothing passes the filter, every row of a window is read. So windows
 * grow with what they have cost, and a page ends when it has read this many rows.
 */
const WINDOW_GROWTH_MAX = 32;
const READ_ROWS_MAX = 12_000;
/** A window with more rows is not read at all. Together with what it has read before, this bounds what a page reads. */
const WINDOW_ROWS_MAX = 30_000;
/** Of a range: so many rows in the first look, which is mostly all; and so long a one where nothing is known of the feed. */
const FIRST_ROWS = 15_000;
const FIRST_RANGE_US = 4 * 3_600 * SECOND_US;
/** The times of indexing that sources give are slightly off. */
const DAY_US = 86_400 * SECOND_US;

/**
 * Readers share one statement. The engine answers its parts one after the other: with more than four it saves almost
 * nothing for a page, and the first one waits for the last.
 */
const TURNS = { sizeMax: 4, waitMaxMs: 10 };

/**
 * Creates the reader of entries of a feed. A question opens every part that may have something of its window, so the first
 * window is as wide as the feed's pages of late, and the second is all the rest, of which a few rows of each part are read.
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
  // Nothing is ever added before the first row of a feed, and before it there are decades without a row.
  const isStart = question.direction === 'next' && question.gap.updatedAt === 0;
  let edge = isStart ? paces.firstOf(question) : startOf(question);
  const isKnown = pace !== null && edge > 0;
  let size = isKnown ? Math.max(SECOND_US, Math.ceil(pace * limit * WIDE)) : Number.POSITIVE_INFINITY;
  for (;;) {
    const window = windowAt(question, edge, size);
    if (window.least >= window.end) return { entries, isFull: false, behind: null };
    const asked = { ...question, limit: limit - entries.length };
    const piece = toPiece(asked, await askInTurn({ question: asked, window }));
    entries.push(...piece.entries);
    paces.learn(question, toPace(piece));
    if (isStart && edge === 0) paces.learnFirst(question, piece.entries[0]);
    if (piece.isFull) return { entries, isFull: true, behind: null };
    edge = farEdgeOf(question, window);
    size = Number.POSITIVE_INFINITY;
  }
}

/**
 * Reads what was indexed in a range. In front of the range the index of times leaves out nearly all there is, and in it
 * nearly all passes, so that is looked at at once; behind it only updates are in it, and each row of a window is read.
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
    // Inside the range nearly everything passes, so reading stops when the page is full, however many rows the window
    // has. A small window has more only when there are many parts: one granule of each is read.
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
    entries.push(...piece.entries);
    if (piece.isFull) return { entries, isFull: true, behind: null };
    read += readRows;
    edge = farEdgeOf(question, window);
    const isAtEnd = window.least === 0 || window.end === question.horizon;
    if (read >= READ_ROWS_MAX && !isAtEnd) return { entries, isFull: false, behind: toGapAt(question, edge) };
    if (!isInFront) paces.learn(question, (window.end - window.least) / Math.max(1, readRows));
    size = isInFront
      ? sizeBehind
      : Math.ceil((window.end - window.least) * Math.min(growthMax, toGrowth(read, readRows)));
    // Activities indexed long ago may have been stored recently, so there may be years without a row.
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

/** A window may have far more rows than expected. */
function toNullWhenTooMany(fault: unknown): null {
  if (fault instanceof StoreFault && fault.code === TOO_MANY_ROWS) return null;
  throw fault;
}

/**
 * The next window is as large as the rest needs, if its rows are as dense. Growth has a least value, or it would stop
 * at nothing.
 */
function toGrowth(read: number, last: number): number {
  if (last === 0) return WINDOW_GROWTH_MAX;
  return Math.min(WINDOW_GROWTH_MAX, Math.max(0, READ_ROWS_MAX - read) / last);
}

/** Most feeds whose pace is remembered; any other is first asked with one window for everything. */
const FEEDS_MAX = 10_000;

/**
 * How long feeds of late took for an entry, or in a range for a row that was read, in microseconds. A guess: it only says
 * how wide to look first. A feed that did not fill a page is not known, as what nobody has asked for.
 */
function createPaces() {
  const known = new Map<string, number>();
  const firsts = new Map<string, number>();
  const nameOf = (question: PageQuestion) => {
    const { chain, filters } = question;
    return `${toFeedName(chain, filters)} ${hasRange(question)}`;
  };
  return {
    /** Time of the first row of a feed; 0 while it is not known. */
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
 * A condition on ids would keep the engine from finding the gap by binary search. So a few rows before it are read too.
 */
const toPiece = (
  { gap, direction, limit }: PageQuestion,
  selected: readonly FeedEntry[],
): Omit<FeedPiece, 'behind'> => ({
  entries: selected.filter((entry) => isBeyond(entry, gap, direction)),
  isFull: selected.length === limit,
});

/** Whatever a range is, and in whatever order rows came. */
const BEHIND_SETTINGS: QuestionSettings = { ...SETTINGS, max_rows_to_read: WINDOW_ROWS_MAX };
