import { quoteBytes, quoteText } from '@playline/stores';
import { type ClickHouseClient, toQuerySize } from '@playline/stores/clickhouse';
import { createColumnReader } from '../row/row-columns.ts';

/** The same rules as in the materialized views of these tables. A test compares the results of both. */
const DERIVED = [
  {
    table: 'identity_days',
    select: 'environment_id, identity_key, toDate(event_time) AS day, event_name, test',
    groupBy: 'environment_id, identity_key, day, event_name, test',
  },
  {
    table: 'identities',
    select: `environment_id, identity_key, test, min(event_time) AS first_seen_at, max(event_time) AS last_seen_at,
      argMinState((surface::String, page_url, page_referrer)::Tuple(surface String, page_url String, page_referrer String), (type != 'page', event_time, message_id, bitNot(version))) AS first_touch,
      argMaxIfState(traits, (event_time, message_id, version), type = 'identify' AND traits != '') AS latest_traits,
      max(least(event_time, received_at + INTERVAL 1 MINUTE)) AS last_active_at`,
    groupBy: 'environment_id, identity_key, test',
  },
] as const;

/**
 * Fills the derived tables again from events that may be stored. ClickHouse writes the rows of an insert first and runs
 * its materialized views afterwards. After a crash between the two, only the rows are stored, and stored rows are not
 * inserted again. Rows that are derived twice fold.
 *
 * Reads only the granules of the event names, days and owners of these rows, as `storedOffsetsQuery` does: one message
 * that was delayed for weeks must not make it read every day in between.
 * @param rows RowBinary of `events`, at least one
 */
export async function deriveAgain(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader('events', ['environment_id', 'event_name', 'event_time', 'identity_key']);
  const places = new Set(
    rows.map((row) => {
      const [environment, name, time, key] = read(row);
      const day = new Date(Number(time)).toISOString().slice(0, 10);
      return `(${quoteText(String(environment))}, ${quoteText(String(name))}, '${day}', ${quoteBytes(key as Buffer)})`;
    }),
  );
  const where = `identity_key != toFixedString('', 16) AND type != 'alias'
    AND (environment_id, event_name, toDate(event_time), identity_key) IN (${[...places].join(', ')})`;
  for (const { table, select, groupBy } of DERIVED) {
    const query = `INSERT INTO ${table} SELECT ${select} FROM events WHERE ${where} GROUP BY ${groupBy}`;
    await client.command({
      query,
      clickhouse_settings: { max_query_size: toQuerySize(query), wait_end_of_query: 1 },
    });
  }
}
