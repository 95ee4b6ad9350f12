import { comparePositions, type Gap, type Position, toGap } from './position.ts';
import type { ActivityRow } from './rows.ts';
import type { ActivityPage, PageQuestion } from './store.ts';

/** What pages are made of. All of it as of the question's horizon: nothing at or behind it is seen. */
export interface VersionSource {
  /**
   * Positions of versions beyond the gap that pass the filters, in the order of reading, at most `limit`; fewer only when
   * there are no more. A version whose block was written twice may come twice, one after the other.
   */
  positions(question: PageQuestion): Promise<readonly Position[]>;
  /** Of each of these activities of the chain the time of its last version. */
  latest(question: PageQuestion, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** The rows at these positions of the chain, in any order. */
  rows(chain: string, positions: readonly Position[]): Promise<readonly ActivityRow[]>;
}

/** After an update of everything most versions have later ones: more are looked at in one go, and then a page ends short. */
const GROWTH = 4;
const LOOKED_AT_ONCE_MAX = 5_000;
const LOOKED_AT_MAX = 20_000;

interface Found {
  /** In the order of reading. */
  readonly positions: readonly Position[];
  /** Behind everything that was looked at. */
  readonly far: Gap;
}

/**
 * Creates the reader of pages. It serves a version unless the activity has a later one below the horizon: so of every
 * activity exactly one version, wherever it now stands, and never none.
 */
export function createReadPage(source: VersionSource): (question: PageQuestion) => Promise<ActivityPage> {
  return async (question) => {
    const { chain, gap, direction } = question;
    const { positions, far } = await findPositions(source, question);
    if (positions.length === 0)
      return direction === 'next' ? { rows: [], previous: gap, next: far } : { rows: [], previous: far, next: gap };
    const rows = await readRows(source, chain, positions);
    const near = toGap(positions[0]!, direction === 'next' ? 'before' : 'after');
    return direction === 'next' ? { rows, previous: near, next: far } : { rows, previous: far, next: near };
  };
}

async function findPositions(source: VersionSource, question: PageQuestion): Promise<Found> {
  const { limit, direction } = question;
  const kept: Position[] = [];
  let far = question.gap;
  let looked = 0;
  for (let size = limit; ; size = Math.min(size * GROWTH, LOOKED_AT_ONCE_MAX)) {
    const found = await source.positions({ ...question, gap: far, limit: size });
    const latest = await source.latest(question, [...new Set(found.map(({ id }) => id))]);
    for (const [index, position] of found.entries()) {
      const isCopy = index > 0 && comparePositions(found[index - 1]!, position) === 0;
      if (isCopy) continue;
      if (kept.length === limit) return { positions: kept, far };
      far = toGap(position, direction === 'next' ? 'after' : 'before');
      if ((latest.get(position.id) ?? position.updatedAt) <= position.updatedAt) kept.push(position);
    }
    looked += found.length;
    if (kept.length === limit || found.length < size || looked >= LOOKED_AT_MAX) return { positions: kept, far };
  }
}

async function readRows(source: VersionSource, chain: string, positions: readonly Position[]): Promise<ActivityRow[]> {
  const nameOf = ({ updatedAt, id }: Position) => `${updatedAt} ${id}`;
  const rows = new Map((await source.rows(chain, positions)).map((row) => [nameOf(row), row]));
  return positions.toSorted(comparePositions).map((position) => {
    const row = rows.get(nameOf(position));
    // Left out it would be missed for ever by whoever follows the feed.
    if (row === undefined) throw new Error(`the version at ${position.updatedAt} is in the order and not in the table`);
    return row;
  });
}
