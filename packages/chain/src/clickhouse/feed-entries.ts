import type { FeedEntry, FeedPiece, FeedSource } from '../page.ts';
import { type Gap, isBeyond } from '../position.ts';
import type { PageQuestion } from '../store.ts';
import { toTimeLiteral } from './literals.ts';
import type { QuestionSettings, Questions } from './questions.ts';
import { RowBinaryReader } from './row-binary.ts';

/** How wide the first look is, in what the page is expected to take: a feed is not even. */
const WIDE = 2;
const SECOND_US = 1_000_000;
/**
 * Times of indexing are in no order. Where nearly nothing passes, each row of a window is read, so windows grow with
 * what they have cost, and a page that has read so many rows ends.
 */
const WINDOW_GROWTH_MAX = 32;
const READ_ROWS_MAX = 12_000;
/** Of a range: so many rows in the first look, which is mostly all; and so long a one where nothing is known of the feed. */
const FIRST_ROWS = 15_000;
const FIRST_RANGE_US = 4 * 3_600 * SECOND_US;
/** Sources tell times of indexing that are a little off. */
const DAY_US = 86_400 * SECOND_US;

/** From `least` (which is in it) to before `end`. */
interface Window {
  readonly least: number;
  readonly end: number;
}

/**
 * Creates the reader of entries of a feed. A question opens every part that may have something of its window, so the first
 * window is as wide as the feed's pages of late, and the second is all the rest, of which a few rows of each part are read.
 */
export function createReadEntries({ ask }: Pick<Questions, 'ask'>): FeedSource['entries'] {
  const paces = createPaces();
  return async (question, limit) => {
    const { gap, direction, horizon } = question;
    const isForward = direction === 'next';
    const isRange = hasRange(question);
    const entries: FeedEntry[] = [];
    let edge = isForward ? gap.updatedAt : Math.min(gap.updatedAt + 1, horizon);
    const pace = paces.of(question);
    // In front of everything there are decades without a row.
    const firstSize = edge === 0 ? Number.POSITIVE_INFINITY : toSize(pace, limit);
    let size = isRange ? toRangeSize(question, edge, pace) : firstSize;
    for (let read = 0; ; ) {
      const window = isForward
        ? { least: edge, end: Math.min(edge + size, horizon) }
        : { least: Math.max(edge - size, 0), end: edge };
      if (window.least >= window.end) return { entries, isFull: false, behind: null };
      const piece = await readWindow(ask, { ...question, limit: limit - entries.length }, window);
      entries.push(...piece.entries);
      if (!isRange) paces.learn(question, toPace(piece));
      else if (!piece.isFull && !isInFront(question, edge))
        paces.learn(question, (window.end - window.least) / Math.max(1, piece.readRows));
      if (piece.isFull) return { entries, isFull: true, behind: null };
      read += piece.readRows;
      const wasInFront = isInFront(question, edge);
      edge = isForward ? window.end : window.least;
      const isAtEnd = isForward ? edge >= horizon : edge <= 0;
      if (!isAtEnd && read >= READ_ROWS_MAX && isRange)
        return { entries, isFull: false, behind: toGapAt(edge, isForward) };
      if (!isRange) size = Number.POSITIVE_INFINITY;
      else if (wasInFront) size = toRangeSize(question, edge, pace);
      else size = Math.ceil(size * toGrowth(read, piece.readRows));
    }
  };
}

const hasRange = ({ filters }: PageQuestion): boolean => filters.fromIndexedAt !== null || filters.toIndexedAt !== null;

/** Everything at once where the feed is not known: what is rare takes one question. */
const toSize = (paceUs: number | null, limit: number): number =>
  paceUs === null ? Number.POSITIVE_INFINITY : Math.max(SECOND_US, Math.ceil(paceUs * limit * WIDE));

const isInFront = ({ filters }: PageQuestion, edge: number): boolean => edge < (filters.fromIndexedAt ?? 0) - DAY_US;

/**
 * In front of the range the index of times leaves out nearly all there is, and in it nearly all passes, so it can be
 * looked at at once; behind it only updates are in it.
 */
function toRangeSize(question: PageQuestion, edge: number, paceUs: number | null): number {
  const { filters, horizon, direction } = question;
  if (isInFront(question, edge)) return direction === 'next' ? (filters.toIndexedAt ?? horizon) + DAY_US - edge : edge;
  return paceUs === null ? FIRST_RANGE_US : Math.max(SECOND_US, Math.ceil(paceUs * FIRST_ROWS));
}

/** So that the next window reads what is left to be read, if its rows are as dense. */
const toGrowth = (read: number, last: number): number =>
  Math.min(WINDOW_GROWTH_MAX, Math.max(0, READ_ROWS_MAX - read) / Math.max(1, last));

/** Feeds that are remembered; more are asked for with everything at once. */
const FEEDS_MAX = 10_000;

/**
 * How long feeds of late took for an entry, or in a range for a row that was read, in microseconds. A guess: it only says
 * how wide to look first. A feed that did not fill a page is not known, as what nobody has asked for.
 */
function createPaces() {
  const known = new Map<string, number>();
  const nameOf = (question: PageQuestion) => {
    const { chain, filters } = question;
    return `${chain} ${filters.contractAddress} ${filters.type} ${hasRange(question)}`;
  };
  return {
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
const toGapAt = (edge: number, isForward: boolean): Gap =>
  isForward ? { side: 'after', updatedAt: edge - 1, id: LAST_ID } : { side: 'before', updatedAt: edge, id: FIRST_ID };
const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

async function readWindow(
  ask: Questions['ask'],
  question: PageQuestion,
  window: Window,
): Promise<Omit<FeedPiece, 'behind'> & { readRows: number }> {
  const { chain, filters, gap, direction, limit, horizon } = question;
  const order = direction === 'next' ? '' : ' DESC';
  const { bytes, readRows } = await ask(
    `${SELECT_ENTRIES(toTimeLiteral(horizon))} WHERE ${toConditions(question, window)} ` +
      `ORDER BY ${FEED_ORDER.map((column) => column + order).join(', ')} LIMIT ${limit} FORMAT RowBinary`,
    { chain, contract: filters.contractAddress?.slice(2) ?? '', type: filters.type ?? '' },
    SETTINGS,
  );
  const reader = new RowBinaryReader(bytes);
  const found: FeedEntry[] = [];
  let count = 0;
  for (; !reader.isAtEnd; count++) {
    const entry = {
      ...{ updatedAt: reader.int64(), id: reader.text(), partition: reader.uint16() },
      ...{ isOutdated: reader.uint8() === 1, members: reader.bytes() },
    };
    // A condition on ids would keep the engine from finding the gap by halving.
    if (isBeyond(entry, gap, direction)) found.push(entry);
  }
  return { entries: found, isFull: count === limit, readRows };
}

/** The whole key: named by its end alone, the engine does not see that a feed is in this order already. */
const FEED_ORDER = ['chain', 'of_contract', 'of_type', 'updated_at', 'id'];
/** In the order of the reader above. Of what has a later version below the horizon the text is not wanted. */
const SELECT_ENTRIES = (horizon: string) =>
  `SELECT toUnixTimestamp64Micro(updated_at), toString(id), kafka_partition, superseded_at < ${horizon} AS is_outdated, ` +
  "if(is_outdated, '', members) FROM activity_feeds";

function toConditions({ filters }: PageQuestion, { least, end }: Window): string {
  const { fromIndexedAt, toIndexedAt } = filters;
  return [
    'chain = {chain: String} AND of_contract = unhex({contract: String}) AND of_type = {type: String}',
    `updated_at >= ${toTimeLiteral(least)} AND updated_at < ${toTimeLiteral(end)}`,
    ...(fromIndexedAt === null ? [] : [`indexed_at >= ${toTimeLiteral(fromIndexedAt)}`]),
    ...(toIndexedAt === null ? [] : [`indexed_at <= ${toTimeLiteral(toIndexedAt)}`]),
  ].join(' AND ');
}

/** What little is read of each part is read at once: a look at a condition or an index first takes longer. */
const SETTINGS: QuestionSettings = {
  max_threads: 1,
  // Small, so that a reading in order ends soon.
  max_block_size: 256,
  // Buffered, every part is read until it has rows enough for the whole page.
  read_in_order_use_buffering: 0,
  // Parts are brought into one order before the text of rows is read: a third less with fifty of them.
  read_in_order_two_level_merge_threshold: 1,
  optimize_move_to_prewhere: 0,
  use_skip_indexes_on_data_read: 0,
  output_format_parallel_formatting: 0,
};
