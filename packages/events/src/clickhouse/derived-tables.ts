import type { ClickHouseClient } from '@clickhouse/client';
import { createColumnReader } from '../row/row-columns.ts';
import { quote, quoteBytes } from './literals.ts';

/** What the materialized views of these tables select; a test compares what both make of the same events. */
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
      argMaxIfState(traits, (event_time, message_id, version), type = 'identify') AS latest_traits`,
    groupBy: 'environment_id, identity_key, test',
  },
] as const;

/**
 * Derives again what follows from events that may be stored. The engine writes the rows of an insert, and then what its
 * views make of them. Of an insert that was cut off only the rows may be stored, and rows that are stored are not
 * inserted again. What is derived twice folds.
 *
 * Reads only the granules that the rows' own names, days and owners lead to, as the question for stored rows does: a
 * message that was kept back for weeks must not open all days between.
 * @param rows RowBinary of `events`, at least one
 */
export async function deriveAgain(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader('events', ['environment_id', 'event_name', 'event_time', 'identity_key']);
  const places = new Set(
    rows.map((row) => {
      const [environment, name, time, key] = read(row);
      const day = new Date(Number(time)).toISOString().slice(0, 10);
      return `(${quote(String(environment))}, ${quote(String(name))}, '${day}', ${quoteBytes(key as Buffer)})`;
    }),
  );
  const where = `identity_key != toFixedString('', 16) AND type != 'alias'
    AND (environment_id, event_name, toDate(event_time), identity_key) IN (${[...places].join(', ')})`;
  for (const { table, select, groupBy } of DERIVED) {
    const query = `INSERT INTO ${table} SELECT ${select} FROM events WHERE ${where} GROUP BY ${groupBy}`;
    await client.command({
      query,
      clickhouse_settings: { max_query_size: String(262_144 + Buffer.byteLength(query)), wait_end_of_query: 1 },
    });
  }
}
