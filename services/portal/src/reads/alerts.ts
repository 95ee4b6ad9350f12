/** Reads the numbers that the rules about projects compare with their thresholds. */
import { number, type QueryView, text } from './query-view.ts';

const PARTS = [
  'same minutes of yesterday',
  'day before',
  'hour before',
  'stored',
  'delay in ms',
  'pending mints',
  'failed mints',
] as const;

export type AlertCounts = Readonly<Record<(typeof PARTS)[number], number>>;

const COLUMNS = { environmentId: text('environment_id'), part: text('part'), value: number('value') };

export const NO_COUNTS = Object.fromEntries(PARTS.map((part) => [part, 0])) as AlertCounts;

export interface AlertCountsSearch {
  /** At most `ENVIRONMENTS_MAX`. */
  readonly environmentIds: readonly string[];
  /** Start of the current minute. */
  readonly nowS: number;
}

/** Limits a query to about 100 kB of text and 7,000 rows. */
export const ENVIRONMENTS_MAX = 1_000;

/** Returns an entry for each environment that has any messages or mint requests. */
export async function readAlertCounts(
  queryView: QueryView,
  { environmentIds: environments, nowS: now }: AlertCountsSearch,
): Promise<ReadonlyMap<string, AlertCounts>> {
  const rowsMax = PARTS.length * ENVIRONMENTS_MAX;
  const rows = await queryView({ view: 'portal_alert_counts', args: { environments, now }, columns: COLUMNS, rowsMax });
  const counts = new Map<string, AlertCounts>();
  for (const { environmentId, part, value } of rows)
    counts.set(environmentId, { ...(counts.get(environmentId) ?? NO_COUNTS), [part]: value });
  return counts;
}
