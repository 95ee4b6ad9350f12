import { comparePositions, type Direction, type Gap, type Position, toGap } from './position.ts';
import type { ActivityPage, PageQuestion, ShownActivity } from './store.ts';

/**
 * What stands in a feed at a position: a version with its text, or that it is superseded. Entries of one position are
 * neighbours and belong together; copies of one may stand too, until they are folded.
 */
export interface FeedEntry extends ShownActivity {
  /** Whether its activity has a later version below the horizon. */
  readonly isOutdated: boolean;
}

/** Entries next to a gap. */
export interface FeedPiece {
  /** Beyond the gap, in the order of reading. */
  readonly entries: readonly FeedEntry[];
  /** As many were read as were asked for: what follows may belong to the last of them. */
  readonly isFull: boolean;
  /** Where the reading ended before the feed did, because it had cost enough: between entries. */
  readonly behind: Gap | null;
}

/** What pages are made of. All of it as of the question's horizon: nothing at or behind it is seen. */
export interface FeedSource {
  /** @param limit entries to read at most; some of them may stand in front of the gap, and are not in the answer */
  entries(question: PageQuestion, limit: number): Promise<FeedPiece>;
}

/**
 * Of a common feed some versions in a hundred have later ones, of the oldest one in six, and a second entry that says so:
 * half more is asked for, or a page would take two turns. Each opens every part; the text of fifty rows more costs little.
 */
const SPARE = 1 / 2;
/** Of a small page as well: a version has such an entry and its copies behind it. */
const SPARE_MIN = 8;
/**
 * After an update of everything most versions have later ones: more are looked at in one go, and then a page ends short.
 * Each comes with its text, of 64 KiB at most.
 */
const GROWTH = 4;
const LOOKED_AT_ONCE_MAX = 500;
const LOOKED_AT_MAX = 20_000;
/**
 * A page that has cost so much ends short, wherever it is: one that a reader gives up would be begun anew at the same
 * place, for ever. A hundred times what a page costs in ten million activities.
 */
const WORK_MAX_MS = 1_000;

interface Found {
  /** In the order of reading. */
  readonly rows: readonly ShownActivity[];
  /** Behind everything that was looked at. */
  readonly far: Gap;
}

/**
 * Creates the reader of pages. It serves a version unless the activity has a later one below the horizon: so of every
 * activity exactly one version, wherever it now stands, and never none.
 */
export function createReadPage(
  source: FeedSource,
  workMaxMs: number = WORK_MAX_MS,
): (question: PageQuestion) => Promise<ActivityPage> {
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

async function findRows(source: FeedSource, question: PageQuestion, untilMs: number): Promise<Found> {
  const { limit, direction } = question;
  const rows: ShownActivity[] = [];
  let far = question.gap;
  let looked = 0;
  for (let size = withSpare(limit); ; ) {
    const piece = await source.entries({ ...question, gap: far }, size);
    const versions = foldEntries(piece.entries);
    // What follows may say that the last one is superseded.
    if (piece.isFull) versions.pop();
    const before = rows.length;
    for (const version of versions) {
      if (rows.length === limit) return { rows, far };
      far = toGap(version, toSide(direction));
      if (isServed(version)) rows.push(toShown(version));
    }
    if (piece.behind !== null) return { rows, far: piece.behind };
    looked += versions.length;
    const isSpent = versions.length > 0 && (looked >= LOOKED_AT_MAX || performance.now() >= untilMs);
    if (rows.length === limit || !piece.isFull || isSpent) return { rows, far };
    // All that was read may stand at one position: then only more leads further. What is missing is asked for twice over,
    // or a feed with many later versions would take a turn more, of which each opens every part.
    if (versions.length === 0) size *= GROWTH;
    else if (2 * (rows.length - before) > versions.length) size = withSpare(2 * (limit - rows.length));
    else size = Math.min(size * GROWTH, LOOKED_AT_ONCE_MAX);
  }
}

const withSpare = (rows: number): number => rows + Math.max(SPARE_MIN, Math.ceil(rows * SPARE));

const toSide = (direction: Direction): Gap['side'] => (direction === 'next' ? 'after' : 'before');

/** Nothing but the note that something was superseded has no text: a row of a log that was lost. */
const isServed = ({ isOutdated, members }: FeedEntry): boolean => !isOutdated && members.length > 0;

const toShown = ({ updatedAt, id, partition, members }: FeedEntry): ShownActivity => ({
  updatedAt,
  id,
  partition,
  members,
});

/** One entry a position, of all that stand there. */
function foldEntries(entries: readonly FeedEntry[]): FeedEntry[] {
  const folded: FeedEntry[] = [];
  for (const entry of entries) {
    const last = folded.at(-1);
    if (last === undefined || !isSamePlace(last, entry)) folded.push(entry);
    else folded[folded.length - 1] = foldTwo(last, entry);
  }
  return folded;
}

const isSamePlace = (a: Position, b: Position): boolean => a.updatedAt === b.updatedAt && comparePositions(a, b) === 0;

function foldTwo(first: FeedEntry, second: FeedEntry): FeedEntry {
  const whole = first.members.length > 0 ? first : second;
  return { ...whole, isOutdated: first.isOutdated || second.isOutdated };
}
