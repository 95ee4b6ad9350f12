import { comparePositions, type Gap, type Position, toGap } from './cursor.ts';
import type { ActivityPage, PageQuery, ShownActivity } from './store.ts';

/** A version with its text, or a note that it is superseded. Entries of one position are neighbours. */
export interface FeedEntry extends ShownActivity {
  /** Superseded below the horizon. */
  readonly isOutdated: boolean;
}

export interface FeedPiece {
  readonly entries: readonly FeedEntry[];
  /** The limit was reached; the next entry may have the same position as the last one. */
  readonly isFull: boolean;
  /** The gap where reading stopped early because of its cost. */
  readonly continueAt: Gap | null;
}

/** Returns nothing at or after the horizon. */
export interface FeedSource {
  /** @param limit entries to read, including some before the gap */
  entries(query: PageQuery, limit: number): Promise<FeedPiece>;
}

/** Entries read beyond the limit. A second query opens every part again, fifty more rows cost little. */
const SPARE = 1 / 2;
/** Notes and copies of a small page. */
const SPARE_MIN = 8;
/** After an update of everything most versions are superseded: larger queries, up to a limit per page. */
const GROWTH = 4;
const READ_SIZE_MAX = 500;
const ENTRIES_READ_MAX = 20_000;
/** Otherwise a reader with a timeout would never get further. */
const WORK_MAX_MS = 1_000;

/** Reads pages: a version is served unless a later one is below the horizon. */
export function createReadPage(
  source: FeedSource,
  workMaxMs: number = WORK_MAX_MS,
): (query: PageQuery) => Promise<ActivityPage> {
  return async (query) => {
    const { gap, direction } = query;
    const { rows, far } = await findRows(source, query, performance.now() + workMaxMs);
    const [first] = rows;
    const near = first === undefined ? gap : toGap(first, direction === 'next' ? 'before' : 'after');
    return direction === 'next'
      ? { rows, previous: near, next: far }
      : { rows: rows.toReversed(), previous: far, next: near };
  };
}

async function findRows(source: FeedSource, query: PageQuery, untilMs: number) {
  const { limit, direction } = query;
  const rows: ShownActivity[] = [];
  let far = query.gap;
  let read = 0;
  for (let size = withSpare(limit); ; ) {
    const piece = await source.entries({ ...query, gap: far }, size);
    const versions = foldEntries(piece.entries);
    if (piece.isFull) versions.pop();
    const before = rows.length;
    for (const version of versions) {
      if (rows.length === limit) return { rows, far };
      const { updatedAt, id, partition, members, isOutdated } = version;
      far = toGap(version, direction === 'next' ? 'after' : 'before');
      // A note has no text; its version may be lost with its log.
      if (!isOutdated && members.length > 0) rows.push({ updatedAt, id, partition, members });
    }
    if (piece.continueAt !== null) return { rows, far: piece.continueAt };
    read += versions.length;
    const isSpent = versions.length > 0 && (read >= ENTRIES_READ_MAX || performance.now() >= untilMs);
    if (rows.length === limit || !piece.isFull || isSpent) return { rows, far };
    // A query opens every part. If all entries have one position, only a larger query gets further.
    if (versions.length === 0) size *= GROWTH;
    else if (2 * (rows.length - before) > versions.length) size = withSpare(2 * (limit - rows.length));
    else size = Math.min(size * GROWTH, READ_SIZE_MAX);
  }
}

const withSpare = (rows: number): number => rows + Math.max(SPARE_MIN, Math.ceil(rows * SPARE));

function foldEntries(entries: readonly FeedEntry[]): FeedEntry[] {
  const folded: FeedEntry[] = [];
  for (const entry of entries) {
    const last = folded.at(-1);
    if (last === undefined || !isSamePosition(last, entry)) folded.push(entry);
    else folded[folded.length - 1] = foldTwo(last, entry);
  }
  return folded;
}

const isSamePosition = (a: Position, b: Position): boolean =>
  a.updatedAt === b.updatedAt && comparePositions(a, b) === 0;

function foldTwo(first: FeedEntry, second: FeedEntry): FeedEntry {
  const whole = first.members.length > 0 ? first : second;
  return { ...whole, isOutdated: first.isOutdated || second.isOutdated };
}
