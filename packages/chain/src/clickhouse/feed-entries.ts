import type { FeedEntry, FeedPiece, FeedSource } from '../page.ts';
import { type Gap, isBeyond } from '../position.ts';
import type { PageQuestion } from '../store.ts';
import { toTimeLiteral } from './literals.ts';
import type { QuestionSettings, Questions } from './questions.ts';
import { RowBinaryReader } from './row-binary.ts';

const HOUR_US = 60 * 60 * 1_000_000;
/**
 * A page opens every part that may have something of its window. Nearly all pages fit the first one; what is too rare for
 * it is looked for in all the rest at once, which reads a few rows of each part.
 */
const FIRST_WINDOW_US = { all: HOUR_US, filtered: 32 * HOUR_US };
/**
 * Times of indexing are in no order. Where nearly nothing passes, each row of a window is read, so windows grow with
 * what they have cost, and a page that has read so many rows ends.
 */
const WINDOW_GROWTH_MAX = 32;
const READ_ROWS_MAX = 20_000;

/** From `least` (which is in it) to before `end`. */
interface Window {
  readonly least: number;
  readonly end: number;
}

/** Creates the reader of entries of a feed, window by window. */
export function createReadEntries({ ask }: Pick<Questions, 'ask'>): FeedSource['entries'] {
  return async (question, limit) => {
    const { gap, direction, horizon, filters } = question;
    const isForward = direction === 'next';
    const isOrdered = filters.fromIndexedAt === null && filters.toIndexedAt === null;
    const isOfAll = filters.contractAddress === null && filters.type === null;
    const entries: FeedEntry[] = [];
    let edge = isForward ? gap.updatedAt : Math.min(gap.updatedAt + 1, horizon);
    let read = 0;
    // In front of everything there are decades without a row.
    let size = edge === 0 && isOrdered ? Number.POSITIVE_INFINITY : FIRST_WINDOW_US[isOfAll ? 'all' : 'filtered'];
    for (;;) {
      const window = isForward
        ? { least: edge, end: Math.min(edge + size, horizon) }
        : { least: Math.max(edge - size, 0), end: edge };
      if (window.least >= window.end) return { entries, isFull: false, behind: null };
      const asked = limit - entries.length;
      const piece = await readWindow(ask, { ...question, limit: asked }, window);
      entries.push(...piece.entries);
      if (piece.isFull) return { entries, isFull: true, behind: null };
      read += piece.readRows;
      edge = isForward ? window.end : window.least;
      const isAtEnd = isForward ? edge >= horizon : edge <= 0;
      if (!isAtEnd && read >= READ_ROWS_MAX) return { entries, isFull: false, behind: toGapAt(edge, isForward) };
      size = isOrdered ? Number.POSITIVE_INFINITY : Math.ceil(size * toGrowth(read, piece.readRows));
    }
  };
}

/** So that the next window reads what is left to be read, if its rows are as dense. */
const toGrowth = (read: number, last: number): number =>
  Math.min(WINDOW_GROWTH_MAX, (READ_ROWS_MAX - read) / Math.max(1, last));

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
  optimize_move_to_prewhere: 0,
  use_skip_indexes_on_data_read: 0,
  output_format_parallel_formatting: 0,
};
