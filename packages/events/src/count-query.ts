import { type QueryRows, readRows } from '@playline/stores';

/** Returns SQL that selects the expected rows of a table of counts, for minutes of receipt in epoch seconds. */
export type CountQuery = (sinceS: number, untilS: number) => string;

/** Returns SQL for a time in epoch seconds. */
export const timeOf = (atS: number): string => `fromUnixTimestamp64Milli(${atS}000, 'UTC')`;

/**
 * Reads the definition of `derived_event_counts`, which replaces the view in other queries: only outside of a view does
 * ClickHouse evaluate a materialized CTE once. In a cluster, a message whose copies are merged between two evaluations
 * would not be counted.
 */
export async function readCountQuery(query: QueryRows): Promise<CountQuery> {
  const sql = `SELECT as_select FROM system.tables WHERE database = currentDatabase() AND name = 'derived_event_counts'`;
  const [[definition] = []] = await readRows(query(sql));
  if (definition === undefined) throw new Error('The database has no view derived_event_counts.');
  const all = `SELECT * FROM (${definition}) SETTINGS enable_materialized_cte = 1`;
  return (sinceS, untilS) =>
    all.replaceAll(/\{since:[^}]*\}/g, timeOf(sinceS)).replaceAll(/\{until:[^}]*\}/g, timeOf(untilS));
}
