import type { Gap } from '../cursor.ts';
import type { ActivityRow } from '../rows.ts';
import type { ActivityFilters, PageQuery } from '../store.ts';
import { passesFilters } from './memory/store.ts';

/** The feed's sort key, independent of the code under test. Correct only for the ids in these tests. */
const keyOf = ({ updatedAt, id }: Pick<Gap, 'updatedAt' | 'id'>) => `${String(updatedAt).padStart(16, '0')} ${id}`;

export function naiveFeed(versions: readonly ActivityRow[], horizon: number, filters: ActivityFilters): ActivityRow[] {
  const visible = versions.filter(({ updatedAt }) => updatedAt < horizon);
  return visible
    .filter((row) => !visible.some((other) => other.id === row.id && other.updatedAt > row.updatedAt))
    .filter((row) => passesFilters(row, filters))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** Finds a page's rows by a full scan. */
export function naivePage(versions: readonly ActivityRow[], query: PageQuery): ActivityRow[] {
  const { gap, direction, limit, horizon, filters } = query;
  const feed = naiveFeed(versions, horizon, filters);
  const isBefore = (row: ActivityRow) => (gap.side === 'before' ? keyOf(row) < keyOf(gap) : keyOf(row) <= keyOf(gap));
  const cut = feed.filter(isBefore).length;
  return direction === 'next' ? feed.slice(cut, cut + limit) : feed.slice(Math.max(0, cut - limit), cut);
}
