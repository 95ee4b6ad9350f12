import { quoteBytes, quoteText } from '@playline/stores';
import {
  BLOCK_WRITER_LIMITS,
  type ClickHouse,
  type ClickHouseClient,
  type ClickHouseTarget,
  openClickHouse,
  toQuerySize,
} from '@playline/stores/clickhouse';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import { createColumnReader } from '../row/row-columns.ts';
import type { EventStore, EventTable, OffsetTable, StoredQuestion } from '../store.ts';
import { type StoredPlace, storedOffsetsQuery, toStoredOffsets } from './stored-offsets.ts';

/** Opens the store; connects with the first call. */
export function openEventStore(target: ClickHouseTarget): EventStore {
  const store = openClickHouse(target, BLOCK_WRITER_LIMITS);
  return {
    insert: ({ table, rows, token, signal }) =>
      store.insertBlock({
        statement: insertStatement(table),
        body: rows,
        token,
        signal,
        // Folding copies within the block would cost 2 µs a row, two fifths of an insert. Merges and FINAL fold them
        // anyway, and this way every offset of a block is stored, as `storedOffsets` expects.
        settings: { optimize_on_insert: 0 },
      }),
    storedOffsets: (table, asked) => readOffsets(store, table, asked),
    ready: store.ready,
    close: store.close,
  };
}

const statements = new Map<EventTable, string>();

function insertStatement(table: EventTable): string {
  let statement = statements.get(table);
  if (statement === undefined) {
    const columns = EVENT_TABLE_COLUMNS[table];
    const names = columns.map(({ name }) => name).join(', ');
    const structure = columns.map(({ name, type }) => `${name} ${type.replaceAll("'", "\\'")}`).join(', ');
    statement = `INSERT INTO ${table} (${names}) SELECT ${names} FROM input('${structure}') FORMAT RowBinary`;
    statements.set(table, statement);
  }
  return statement;
}

async function readOffsets(store: ClickHouse, table: OffsetTable, asked: StoredQuestion): Promise<Set<number>> {
  const places = await store.read<StoredPlace>(storedOffsetsQuery(table, asked));
  const stored = toStoredOffsets(table, asked, places);
  if (table === 'events' && stored.size > 0) await store.call(() => deriveAgain(store.client, asked.rows));
  return stored;
}

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
async function deriveAgain(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
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
