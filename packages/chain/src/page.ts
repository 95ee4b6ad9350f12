import { comparePositions, type Gap, type Position, toGap } from './cursor.ts';
import type { ActivityPage, PageQuery, ShownActivity } from './store.ts';

/** A version with its JSON, or a supersession of the version. Entries with the same position are adjacent. */
export interface FeedEntry extends ShownActivity {
  /** Whether a version below the horizon supersedes this version. */
  readonly isOutdated: boolean;
}

export interface FeedChunk {
  readonly entries: readonly FeedEntry[];
  /** Whether the limit was reached. The next entry may then have the same position as the last entry read. */
  readonly isFull: boolean;
  /** The gap at which reading stopped early to limit its cost. */
  readonly continueAt: Gap | null;
}

/** Returns no entries at or after the horizon. */
export interface FeedSource {
  /** @param limit maximum entries to read, including some before the gap */
  entries(query: PageQuery, limit: number): Promise<FeedChunk>;
}

/** Fraction of extra entries per query. Fifty more rows cost little, but a second query opens every part again. */
const SPARE_FRACTION = 1 / 2;
/** Extra entries for the supersessions and duplicates in a small page. */
const SPARE_MIN = 8;
/** If all activities were updated, most versions are superseded. Queries then grow, up to a limit per page. */
const GROWTH = 4;
const READ_SIZE_MAX = 500;
const ENTRIES_READ_MAX = 20_000;
/** Without this limit, a reader with a timeout might never make progress. */
const WORK_MAX_MS = 1_000;

/** Creates a page reader. A page contains a version unless a later version is below the horizon. */
export function createReadPage(
  source: FeedSource,
  workMaxMs: number = WORK_MAX_MS,
): (query: PageQuery) => Promise<ActivityPage> {
  return async (query) => {
    const { gap, direction } = query;
    const { rows, farGap } = await findRows(source, query, performance.now() + workMaxMs);
    const [first] = rows;
    const nearGap = first === undefined ? gap : toGap(first, direction === 'next' ? 'before' : 'after');
    return direction === 'next'
      ? { rows, previous: nearGap, next: farGap }
      : { rows: rows.toReversed(), previous: farGap, next: nearGap };
  };
}

async function findRows(source: FeedSource, query: PageQuery, untilMs: number) {
  const { limit, direction } = query;
  const rows: ShownActivity[] = [];
  let farGap = query.gap;
  let read = 0;
  for (let size = withSpare(limit); ; ) {
    const chunk = await source.entries({ ...query, gap: farGap }, size);
    const versions = mergeEntries(chunk.entries);
    if (chunk.isFull) versions.pop();
    const before = rows.length;
    for (const version of versions) {
      if (rows.length === limit) return { rows, farGap };
      const { updatedAt, id, partition, members, isOutdated } = version;
      farGap = toGap(version, direction === 'next' ? 'after' : 'before');
      // A supersession has no JSON, and its version may have been lost with the log.
      if (!isOutdated && members.length > 0) rows.push({ updatedAt, id, partition, members });
    }
    if (chunk.continueAt !== null) return { rows, farGap: chunk.continueAt };
    read += versions.length;
    const isOverBudget = versions.length > 0 && (read >= ENTRIES_READ_MAX || performance.now() >= untilMs);
    if (rows.length === limit || !chunk.isFull || isOverBudget) return { rows, farGap };
    // If all entries have the same position, only a larger query makes progress.
    if (versions.length === 0) size *= GROWTH;
    else if (2 * (rows.length - before) > versions.length) size = withSpare(2 * (limit - rows.length));
    else size = Math.min(size * GROWTH, READ_SIZE_MAX);
  }
}

const withSpare = (rows: number): number => rows + Math.max(SPARE_MIN, Math.ceil(rows * SPARE_FRACTION));

function mergeEntries(entries: readonly FeedEntry[]): FeedEntry[] {
  const merged: FeedEntry[] = [];
  for (const entry of entries) {
    const last = merged.at(-1);
    if (last === undefined || !isSamePosition(last, entry)) merged.push(entry);
    else merged[merged.length - 1] = mergeTwo(last, entry);
  }
  return merged;
}

const isSamePosition = (a: Position, b: Position): boolean =>
  a.updatedAt === b.updatedAt && comparePositions(a, b) === 0;

function mergeTwo(first: FeedEntry, second: FeedEntry): FeedEntry {
  const withMembers = first.members.length > 0 ? first : second;
  return { ...withMembers, isOutdated: first.isOutdated || second.isOutdated };
}
