import { StoreFault } from '@playline/errors';
import type { FeedEntry, FeedPiece, FeedSource } from '../page.ts';
import { type Gap, isBeyond, START_GAP } from '../position.ts';
import type { PageQuestion } from '../store.ts';
import { toFeedName } from './feed-names.ts';
import { type QuestionSettings, type Questions, TOO_MANY_ROWS } from './questions.ts';
import { findFirst, SETTINGS, type Selection, selectEntries, type Window } from './selections.ts';
import { createTurns } from './turns.ts';

/** How wide the first look is, in what the page is expected to take: a feed is not even. */
const WIDE = 2;
const SECOND_US = 1_000_000;
/**
 * Times of indexing are in no order. Where nearly nothing passes, each row of a window is read, so windows grow with
 * what they have cost, and a page that has read so many rows ends.
 */
const WINDOW_GROWTH_MAX = 32;
const READ_ROWS_MAX = 12_000;
/** A window of more is not read at all: with what a page has read before it, this is all that a page ever reads. */
const WINDOW_ROWS_MAX = 30_000;
/** Of a range: so many rows in the first look, which is mostly all; and so long a one where nothing is known of the feed. */
const FIRST_ROWS = 15_000;
const FIRST_RANGE_US = 4 * 3_600 * SECOND_US;
/** Sources tell times of indexing that are a little off. */
const DAY_US = 86_400 * SECOND_US;

/**
 * Readers share a statement. The engine answers the parts of one after the other: with more than four it takes hardly less
 * for a page, and whoever is first waits for the last.
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
  // Nothing will ever come to stand before the first row of a feed; in front of it there are decades without one.
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
    // In the range nearly all passes, so what is read ends with the page, however much the window has. And a window that
    // is small has more than that only where many parts are: a granule is read of each.
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
    // What was indexed long ago may have come lately: there may be years without a row.
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

/** A window may have far more than it was thought to have. */
function toNullWhenTooMany(fault: unknown): null {
  if (fault instanceof StoreFault && fault.code === TOO_MANY_ROWS) return null;
  throw fault;
}

/** So that the next window reads what is left to be read, if its rows are as dense; of nothing it would grow by nothing. */
function toGrowth(read: number, last: number): number {
  if (last === 0) return WINDOW_GROWTH_MAX;
  return Math.min(WINDOW_GROWTH_MAX, Math.max(0, READ_ROWS_MAX - read) / last);
}

/** Feeds that are remembered; more are asked for with everything at once. */
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

/** The gap at the edge of a window, with everything in the window on one side. */
const toGapAt = ({ direction }: PageQuestion, edge: number): Gap =>
  direction === 'next'
    ? { side: 'after', updatedAt: edge - 1, id: LAST_ID }
    : { side: 'before', updatedAt: edge, id: START_GAP.id };
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A condition on ids would keep the engine from finding the gap by halving, so some may stand in front of it. */
const toPiece = (
  { gap, direction, limit }: PageQuestion,
  selected: readonly FeedEntry[],
): Omit<FeedPiece, 'behind'> => ({
  entries: selected.filter((entry) => isBeyond(entry, gap, direction)),
  isFull: selected.length === limit,
});

/** Whatever a range is, and in whatever order rows came. */
const BEHIND_SETTINGS: QuestionSettings = { ...SETTINGS, max_rows_to_read: WINDOW_ROWS_MAX };
