import { comparePositions, type Gap, type Position, toGap } from './position.ts';
import type { ActivityPage, PageQuestion } from './store.ts';

/** A version that was found, and what else finds it: `indexedAt` is the same in every version. */
export interface FoundVersion extends Position {
  readonly indexedAt: number;
}

/** The row of a version. */
export interface VersionRow<Row> {
  readonly row: Row;
  /** Whether its activity has a later version below the horizon. */
  readonly isOutdated: boolean;
}

/** What pages are made of. All of it as of the question's horizon: nothing at or behind it is seen. */
export interface VersionSource<Row extends Position> {
  /**
   * Positions of versions beyond the gap that pass the filters, in the order of reading, at most `limit`; fewer only when
   * there are no more. A version whose block was written twice may come twice, one after the other.
   */
  positions(question: PageQuestion): Promise<readonly FoundVersion[]>;
  /** The rows of these versions, at least one, in any order; others of the same times may come with them. */
  rows(question: PageQuestion, versions: readonly FoundVersion[]): Promise<readonly VersionRow<Row>[]>;
}

/** Of a common feed some versions in a hundred have later ones: an eighth more is asked for, or it would take two turns. */
const SPARE = 1 / 8;
/** After an update of everything most versions have later ones: more are looked at in one go, and then a page ends short. */
const GROWTH = 4;
const LOOKED_AT_ONCE_MAX = 2_000;
const LOOKED_AT_MAX = 20_000;
/**
 * A page that has cost so much ends short, wherever it is: one that a reader gives up would be begun anew at the same
 * place, for ever. Forty times what a page costs in ten million activities.
 */
const WORK_MAX_MS = 1_000;

interface Found<Row> {
  /** In the order of reading. */
  readonly rows: readonly Row[];
  /** Behind everything that was looked at. */
  readonly far: Gap;
}

/**
 * Creates the reader of pages. It serves a version unless the activity has a later one below the horizon: so of every
 * activity exactly one version, wherever it now stands, and never none.
 */
export function createReadPage<Row extends Position>(
  source: VersionSource<Row>,
  workMaxMs: number = WORK_MAX_MS,
): (question: PageQuestion) => Promise<ActivityPage<Row>> {
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

async function findRows<Row extends Position>(
  source: VersionSource<Row>,
  question: PageQuestion,
  untilMs: number,
): Promise<Found<Row>> {
  const { limit, direction } = question;
  const firstSize = limit + Math.ceil(limit * SPARE);
  const rows: Row[] = [];
  let far = question.gap;
  let looked = 0;
  for (let size = firstSize; ; ) {
    const found = await source.positions({ ...question, gap: far, limit: size });
    const rowOf = await readRows(source, question, found);
    for (const [index, position] of found.entries()) {
      const isCopy = index > 0 && comparePositions(found[index - 1]!, position) === 0;
      if (isCopy) continue;
      if (rows.length === limit) return { rows, far };
      far = toGap(position, direction === 'next' ? 'after' : 'before');
      const { row, isOutdated } = rowOf(position);
      if (!isOutdated) rows.push(row);
    }
    looked += found.length;
    const isSpent = looked >= LOOKED_AT_MAX || performance.now() >= untilMs;
    if (rows.length === limit || found.length < size || isSpent) return { rows, far };
    size = 2 * rows.length > looked ? firstSize : Math.min(size * GROWTH, LOOKED_AT_ONCE_MAX);
  }
}

const nameOf = ({ updatedAt, id }: Position) => `${updatedAt} ${id}`;

async function readRows<Row extends Position>(
  source: VersionSource<Row>,
  question: PageQuestion,
  found: readonly FoundVersion[],
): Promise<(position: Position) => VersionRow<Row>> {
  const read = found.length === 0 ? [] : await source.rows(question, found);
  const rows = new Map(read.map((each) => [nameOf(each.row), each]));
  return (position) => {
    const row = rows.get(nameOf(position));
    // Left out it would be missed for ever by whoever follows the feed.
    if (row === undefined) throw new Error(`the version at ${position.updatedAt} is in the order and not in the table`);
    return row;
  };
}
