import type { Direction } from '@playline/contracts';
import { comparePositions, type Gap, type Position, toGap } from './cursor.ts';
import type { ActivityPage, PageQuery, ShownActivity } from './store.ts';

/**
 * An entry of a feed: a version with its text, or the note that it is superseded. Entries of one position are
 * neighbours and belong together. There may be copies until they are folded.
 */
export interface FeedEntry extends ShownActivity {
  /** Whether its activity has a later version below the horizon. */
  readonly isOutdated: boolean;
}

/** Entries next to a gap. */
export interface FeedPiece {
  /** Entries beyond the gap, in the direction of reading. */
  readonly entries: readonly FeedEntry[];
  /** True when the limit was reached. The next entry may then have the position of the last one. */
  readonly isFull: boolean;
  /** Where reading stopped early because of its cost, a gap between entries; null otherwise. */
  readonly continueAt: Gap | null;
}

/** Source of the entries of pages. It returns nothing at or after the horizon of the query. */
export interface FeedSource {
  /** @param limit most entries to read; some of them may lie before the gap and are dropped */
  entries(question: PageQuery, limit: number): Promise<FeedPiece>;
}

/**
 * Share of entries to read beyond the limit. Usually a few of a hundred versions are superseded, among the oldest one
 * in six, each with a second entry. Without spare entries a page would need a second query, which opens every part
 * again; the text of fifty more rows costs little.
 */
const SPARE = 1 / 2;
/** For small pages: a version may be followed by the entry that it is superseded, and by copies. */
const SPARE_MIN = 8;
/**
 * After an update of everything most versions are superseded. Then more entries are read per query, up to a limit per
 * page, which ends short. Each entry comes with its text of at most 64 KiB.
 */
const GROWTH = 4;
const READ_SIZE_MAX = 500;
const ENTRIES_READ_MAX = 20_000;
/**
 * A page ends short after this time. Otherwise a reader with a timeout would start again at the same place, forever. A
 * hundred times the usual cost of a page among ten million activities.
 */
const WORK_MAX_MS = 1_000;

interface Found {
  /** In the order of reading. */
  readonly rows: readonly ShownActivity[];
  /** The gap after all entries that were read. */
  readonly far: Gap;
}

/**
 * Creates the reader of pages. It serves a version unless the activity has a later one below the horizon. So every
 * activity is served in exactly one version.
 */
export function createReadPage(
  source: FeedSource,
  workMaxMs: number = WORK_MAX_MS,
): (question: PageQuery) => Promise<ActivityPage> {
  return async (question) => {
    const { gap, direction } = question;
    const { rows, far } = await findRows(source, question, performance.now() + workMaxMs);
    const [first] = rows;
    const near = first === undefined ? gap : toGap(first, direction === 'next' ? 'before' : 'after');
    return direction === 'next'
      ? { rows, previous: near, next: far }
      : { rows: rows.toReversed(), previous: far, next: near };
  };
}

async function findRows(source: FeedSource, question: PageQuery, untilMs: number): Promise<Found> {
  const { limit, direction } = question;
  const rows: ShownActivity[] = [];
  let far = question.gap;
  let looked = 0;
  for (let size = withSpare(limit); ; ) {
    const piece = await source.entries({ ...question, gap: far }, size);
    const versions = foldEntries(piece.entries);
    // The next entry may say that the last version is superseded.
    if (piece.isFull) versions.pop();
    const before = rows.length;
    for (const version of versions) {
      if (rows.length === limit) return { rows, far };
      far = toGap(version, toSide(direction));
      if (isServed(version)) rows.push(toShown(version));
    }
    if (piece.continueAt !== null) return { rows, far: piece.continueAt };
    looked += versions.length;
    const isSpent = versions.length > 0 && (looked >= ENTRIES_READ_MAX || performance.now() >= untilMs);
    if (rows.length === limit || !piece.isFull || isSpent) return { rows, far };
    // If all entries have one position, only a larger query gets further. Otherwise ask for twice what is missing: each
    // query opens every part, so one too many costs more than rows.
    if (versions.length === 0) size *= GROWTH;
    else if (2 * (rows.length - before) > versions.length) size = withSpare(2 * (limit - rows.length));
    else size = Math.min(size * GROWTH, READ_SIZE_MAX);
  }
}

const withSpare = (rows: number): number => rows + Math.max(SPARE_MIN, Math.ceil(rows * SPARE));

const toSide = (direction: Direction): Gap['side'] => (direction === 'next' ? 'after' : 'before');

/** Only a note of a supersession has no text. It stands alone when its version was lost with its log. */
const isServed = ({ isOutdated, members }: FeedEntry): boolean => !isOutdated && members.length > 0;

const toShown = ({ updatedAt, id, partition, members }: FeedEntry): ShownActivity => ({
  updatedAt,
  id,
  partition,
  members,
});

/** Merges entries of the same position. */
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
