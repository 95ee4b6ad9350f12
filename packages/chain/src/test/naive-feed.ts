import { passesFilters } from '../filters.ts';
import type { Gap } from '../position.ts';
import type { ActivityRow } from '../rows.ts';
import type { ActivityFilters, PageQuestion } from '../store.ts';

/** Compares as the feed is ordered, written without the code under test: the tests give ids in this order only. */
const keyOf = ({ updatedAt, id }: Pick<Gap, 'updatedAt' | 'id'>) => `${String(updatedAt).padStart(16, '0')} ${id}`;

/** All that is served below a horizon, from the first to the last. */
export function naiveFeed(versions: readonly ActivityRow[], horizon: number, filters: ActivityFilters): ActivityRow[] {
  const below = versions.filter(({ updatedAt }) => updatedAt < horizon);
  return below
    .filter((row) => !below.some((other) => other.id === row.id && other.updatedAt > row.updatedAt))
    .filter((row) => passesFilters(row, filters))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The rows of a page, by looking at everything. */
export function naivePage(versions: readonly ActivityRow[], question: PageQuestion): ActivityRow[] {
  const { gap, direction, limit, horizon, filters } = question;
  const feed = naiveFeed(versions, horizon, filters);
  const isBefore = (row: ActivityRow) => (gap.side === 'before' ? keyOf(row) < keyOf(gap) : keyOf(row) <= keyOf(gap));
  const cut = feed.filter(isBefore).length;
  return direction === 'next' ? feed.slice(cut, cut + limit) : feed.slice(Math.max(0, cut - limit), cut);
}
