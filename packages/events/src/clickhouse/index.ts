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
import { type ColumnValue, createColumnReader } from '../row/row-columns.ts';
import type { EventStore, EventTable, OffsetTable, StoredRowsQuery } from '../store.ts';

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

async function readOffsets(store: ClickHouse, table: OffsetTable, asked: StoredRowsQuery): Promise<Set<number>> {
  const places = await store.read<StoredRowId>(storedOffsetsQuery(table, asked));
  const stored = toStoredOffsets(table, asked, places);
  if (table === 'events' && stored.size > 0) await store.call(() => rebuildDerived(store.client, asked.rows));
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
async function rebuildDerived(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
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

/**
 * How the rows of a table are found by its sorting key. Its last columns, the place in the log, cannot be searched
 * alone.
 */
interface Bounds {
  /** First columns of the sorting key. Only granules with the rows' own values in them are read. */
  readonly key: readonly { readonly column: string; readonly expression: string }[];
  /** A further column, besides `received_at`, whose range limits what is read: by partition, or behind `key`. */
  readonly span: string | null;
}

/**
 * The column that tells two records at the same offset apart, besides the time of receipt. In RowBinary an id is its
 * bytes.
 */
const ID_COLUMNS: Record<OffsetTable, { readonly column: string; readonly hex: string }> = {
  events: { column: 'message_id', hex: "hex(formatRow('RowBinary', message_id))" },
  identity_links: { column: 'message_id', hex: "hex(formatRow('RowBinary', message_id))" },
  consent_log: { column: 'identity_key', hex: 'hex(identity_key)' },
  message_rejections: { column: 'trace_id', hex: 'hex(trace_id)' },
};

const plain = (...columns: string[]) => columns.map((column) => ({ column, expression: column }));

const BOUNDS: Record<OffsetTable, Bounds> = {
  // Exact days and owners, not only a range of times: one message delayed for weeks would make it read all those weeks.
  events: {
    key: [
      ...plain('environment_id', 'event_name'),
      { column: 'event_time', expression: 'toDate(event_time)' },
      ...plain('identity_key'),
    ],
    span: 'event_time',
  },
  identity_links: { key: plain('environment_id', 'link_generation', 'link_partition'), span: 'link_offset' },
  consent_log: { key: plain('environment_id', 'identity_key'), span: null },
  message_rejections: { key: plain('environment_id', 'code', 'field'), span: null },
};

function toLiteral(value: ColumnValue, expression: string): string {
  if (expression.startsWith('toDate(')) return `'${new Date(Number(value)).toISOString().slice(0, 10)}'`;
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? quoteText(value) : quoteBytes(value);
}

function spanOf(table: OffsetTable, column: string, rows: readonly Buffer[]): string {
  const read = createColumnReader(table, [column]);
  const values = rows.map((row) => Number(read(row)[0]));
  const [least, most] = values.reduce(
    ([low, high], value) => [Math.min(low!, value), Math.max(high!, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const show = (value: number | undefined) =>
    column.endsWith('_offset') ? String(value) : `fromUnixTimestamp64Milli(${value}, 'UTC')`;
  return `${column} >= ${show(least)} AND ${column} <= ${show(most)}`;
}

/**
 * The query for the offsets of a range that have a row. No index contains partition and offset, so the keys and times
 * of the rows say where to look. What is read grows with the days and keys of the block, not with the table.
 */
export function storedOffsetsQuery(table: OffsetTable, { partition, start, end, rows }: StoredRowsQuery): string {
  const { key, span } = BOUNDS[table];
  const read = createColumnReader(
    table,
    key.map(({ column }) => column),
  );
  const keys = new Set(
    rows.map((row) =>
      read(row)
        .map((value, index) => toLiteral(value, key[index]!.expression))
        .join(', '),
    ),
  );
  const conditions = [
    `kafka_partition = ${partition}`,
    `kafka_offset >= ${start} AND kafka_offset < ${end}`,
    // Limits what is read. `toStoredOffsets` then compares row by row.
    spanOf(table, 'received_at', rows),
    ...(span === null ? [] : [spanOf(table, span, rows)]),
    `(${key.map(({ expression }) => expression).join(', ')}) IN (${[...keys].map((each) => `(${each})`).join(', ')})`,
  ];
  const columns = 'toString(kafka_offset) AS place, toString(toUnixTimestamp64Milli(received_at)) AS received';
  return `SELECT DISTINCT ${columns}, ${ID_COLUMNS[table].hex} AS told FROM ${table} WHERE ${conditions.join(' AND ')}`;
}

/** A row of the answer: offset, time of receipt in epoch milliseconds, and the hex of the column in `TOLD_BY`. */
export interface StoredRowId {
  readonly place: string;
  readonly received: string;
  readonly told: string;
}

/** The offset is the last column of every table. */
const OFFSET_BYTES = 8;

const nameOf = ({ place, received, told }: StoredRowId) => `${place} ${received} ${told}`;
const toHex = (value: ColumnValue | undefined) =>
  (Buffer.isBuffer(value) ? value : Buffer.from(String(value))).toString('hex').toUpperCase();

/**
 * The offsets at which one of the given rows is stored. After a log was lost, a row of the lost log may be stored at
 * the same offset as a row of the new log. So rows are compared one by one, by time of receipt and `TOLD_BY`. The
 * block's range of times is not enough: a block may have records from before the loss, and records that a gateway sent
 * late.
 */
export function toStoredOffsets(
  table: OffsetTable,
  { rows }: StoredRowsQuery,
  found: readonly StoredRowId[],
): Set<number> {
  const read = createColumnReader(table, ['received_at', ID_COLUMNS[table].column]);
  const asked = rows.map((row) => {
    const [received, told] = read(row);
    const place = String(row.readBigUInt64LE(row.length - OFFSET_BYTES));
    return nameOf({ place, received: String(received), told: toHex(told) });
  });
  const wanted = new Set(asked);
  return new Set(found.filter((each) => wanted.has(nameOf(each))).map(({ place }) => Number(place)));
}
