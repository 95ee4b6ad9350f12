import { overAllNodes, quoteBytes, quoteText } from '@playline/stores';
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

export * from './event-counts.ts';

/** Opens an event store, which connects at the first call. */
export function openEventStore(target: ClickHouseTarget): EventStore {
  // In a cluster, ClickHouse divides the rows of a block among the shards, which keep its token.
  const store = openClickHouse(overAllNodes(target), BLOCK_WRITER_LIMITS);
  return {
    insert: ({ table, rows, token, signal }) =>
      store.insertBlock({
        statement: insertStatement(table),
        body: rows,
        token,
        signal,
        // Deduplication takes two fifths of the insert time, and would remove offsets that `storedOffsets` expects.
        settings: { optimize_on_insert: 0 },
      }),
    storedOffsets: (table, query) => readOffsets(store, table, query),
    ready: store.ready,
    close: store.close,
  };
}

const statements = new Map<EventTable, string>();

function insertStatement(table: EventTable): string {
  const cached = statements.get(table);
  if (cached !== undefined) return cached;
  const columns = EVENT_TABLE_COLUMNS[table];
  const names = columns.map(({ name }) => name).join(', ');
  const structure = columns.map(({ name, type }) => `${name} ${type.replaceAll("'", "\\'")}`).join(', ');
  const statement = `INSERT INTO ${table} (${names}) SELECT ${names} FROM input('${structure}') FORMAT RowBinary`;
  statements.set(table, statement);
  return statement;
}

async function readOffsets(store: ClickHouse, table: OffsetTable, query: StoredRowsQuery): Promise<Set<number>> {
  const found = await store.read<StoredRowId>(storedOffsetsQuery(table, query));
  const stored = toStoredOffsets(table, query, found);
  if (stored.size === 0) return stored;
  if (table === 'events') await store.call(() => rebuildDerived(store.client, query.rows));
  if (table === 'events' || table === 'message_rejections')
    await store.call(() => recount(store.client, table, query.rows));
  return stored;
}

/** Marks the minutes of the rows as not counted, as the materialized views of the table do. */
async function recount(client: ClickHouseClient, table: OffsetTable, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader(table, ['received_at']);
  const minutes = new Set(rows.map((row) => Math.floor(Number(read(row)[0]) / MINUTE_MS) * (MINUTE_MS / 1000)));
  const query = `INSERT INTO counted_minutes (minute_at, stored_at) SELECT arrayJoin([${[...minutes].join(', ')}]), now64(3, 'UTC')`;
  await client.command({ query, clickhouse_settings: { max_query_size: toQuerySize(query), wait_end_of_query: 1 } });
}

const MINUTE_MS = 60_000;

/** Must match the materialized views that fill these tables. A test compares the definitions. */
const DERIVED = [
  {
    table: 'identity_days',
    select: 'environment_id, identity_key, toDate(event_time) AS day, event_name, test',
    where: 'true',
    groupBy: 'environment_id, identity_key, day, event_name, test',
  },
  {
    table: 'identities',
    select: `environment_id, identity_key, test, min(event_time) AS first_seen_at, max(event_time) AS last_seen_at,
      max(concat(
          char(type = 'page'), reinterpretAsFixedString(byteSwap(bitNot(toUnixTimestamp64Milli(event_time)))),
          reinterpretAsFixedString(byteSwap(bitNot(reinterpretAsUInt128(message_id)))), reinterpretAsFixedString(byteSwap(version)),
          toJSONString((surface, page_url, page_referrer)))) AS first_touch,
      maxIf(concat(
          reinterpretAsFixedString(byteSwap(toUnixTimestamp64Milli(event_time))), reinterpretAsFixedString(byteSwap(reinterpretAsUInt128(message_id))),
          reinterpretAsFixedString(byteSwap(version)), traits), type = 'identify' AND traits != '') AS latest_traits,
      max(least(event_time, received_at + INTERVAL 1 MINUTE)) AS last_active_at,
      maxIf(sipHash128(user_id), user_id != '') AS user_hash`,
    where: 'true',
    groupBy: 'environment_id, identity_key, test',
  },
  {
    table: 'session_days',
    select: `environment_id, toDate(event_time) AS day, identity_key, session_id, surface,
      min(least(event_time, received_at + INTERVAL 1 MINUTE)) AS first_at, max(event_time) AS last_at,
      max(toUInt64(greatest(0, toUnixTimestamp64Milli(event_time) - toUnixTimestamp64Milli(received_at) - 60000))) AS lead_ms,
      maxIf(concat(reinterpretAsFixedString(byteSwap(bitNot(toUnixTimestamp64Milli(least(event_time, received_at + INTERVAL 1 MINUTE))))), reinterpretAsFixedString(byteSwap(version)), page_path), page_path != '') AS entry,
      groupUniqArray(100000)(cityHash64(message_id, type, event_name, event_time)) AS messages`,
    where: "session_id != '' AND NOT test",
    groupBy: 'environment_id, day, identity_key, session_id, surface',
  },
] as const;

/**
 * Refills the derived tables, because ClickHouse runs materialized views after it has stored the rows of an insert and
 * may crash in between. Duplicate derived rows are merged. Reads only the days, names and owners of the given rows.
 * @param rows RowBinary of `events`, at least one
 */
async function rebuildDerived(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader('events', ['environment_id', 'event_name', 'event_time', 'identity_key']);
  const keys = new Set(
    rows.map((row) => {
      const [environment, name, time, key] = read(row);
      const day = new Date(Number(time)).toISOString().slice(0, 10);
      return `(${quoteText(String(environment))}, ${quoteText(String(name))}, '${day}', ${quoteBytes(key as Buffer)})`;
    }),
  );
  const found = `identity_key != toFixedString('', 16) AND type != 'alias'
    AND (environment_id, event_name, toDate(event_time), identity_key) IN (${[...keys].join(', ')})`;
  for (const { table, select, where, groupBy } of DERIVED) {
    const query = `INSERT INTO ${table} SELECT ${select} FROM events WHERE ${found} AND ${where} GROUP BY ${groupBy}`;
    const clickhouse_settings = { max_query_size: toQuerySize(query), wait_end_of_query: 1 } as const;
    await client.command({ query, clickhouse_settings });
  }
}

/** Conditions that find rows by sorting key, because partition and offset are its last columns. */
interface Bounds {
  /** Leading columns of the sorting key, compared by value. */
  readonly key: readonly { readonly column: string; readonly expression: string }[];
  /** A column whose range, in addition to `received_at`, limits the rows that are read. */
  readonly range: string | null;
}

/** Columns that, with the receipt time, distinguish records at the same offset. In RowBinary, an id is its bytes. */
const ID_COLUMNS: Record<OffsetTable, { readonly column: string; readonly hex: string }> = {
  events: { column: 'message_id', hex: "hex(formatRow('RowBinary', message_id))" },
  identity_links: { column: 'message_id', hex: "hex(formatRow('RowBinary', message_id))" },
  consent_log: { column: 'identity_key', hex: 'hex(identity_key)' },
  message_rejections: { column: 'trace_id', hex: 'hex(trace_id)' },
};

const toKeyColumns = (...columns: string[]) => columns.map((column) => ({ column, expression: column }));

const BOUNDS: Record<OffsetTable, Bounds> = {
  // Days instead of a time range: a single message delayed by weeks would make the query read all weeks in between.
  events: {
    key: [
      ...toKeyColumns('environment_id', 'event_name'),
      { column: 'event_time', expression: 'toDate(event_time)' },
      ...toKeyColumns('identity_key'),
    ],
    range: 'event_time',
  },
  identity_links: { key: toKeyColumns('environment_id', 'link_generation', 'link_partition'), range: 'link_offset' },
  consent_log: { key: toKeyColumns('environment_id', 'identity_key'), range: null },
  message_rejections: { key: toKeyColumns('environment_id', 'code', 'field'), range: null },
};

function toLiteral(value: ColumnValue, expression: string): string {
  if (expression.startsWith('toDate(')) return `'${new Date(Number(value)).toISOString().slice(0, 10)}'`;
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? quoteText(value) : quoteBytes(value);
}

function toRangeCondition(table: OffsetTable, column: string, rows: readonly Buffer[]): string {
  const read = createColumnReader(table, [column]);
  const values = rows.map((row) => Number(read(row)[0]));
  const [minimum, maximum] = values.reduce(
    ([low, high], value) => [Math.min(low!, value), Math.max(high!, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const toValue = (value: number | undefined) =>
    column.endsWith('_offset') ? String(value) : `fromUnixTimestamp64Milli(${value}, 'UTC')`;
  return `${column} >= ${toValue(minimum)} AND ${column} <= ${toValue(maximum)}`;
}

/** Returns the query for stored offsets. Its cost depends on the days and keys of the rows, not on the table size. */
export function storedOffsetsQuery(table: OffsetTable, { partition, start, end, rows }: StoredRowsQuery): string {
  const { key, range } = BOUNDS[table];
  const names = key.map(({ column }) => column);
  const read = createColumnReader(table, names);
  const toLiterals = (row: Buffer) => read(row).map((value, index) => toLiteral(value, key[index]!.expression));
  const keys = new Set(rows.map((row) => toLiterals(row).join(', ')));
  const conditions = [
    `kafka_partition = ${partition}`,
    `kafka_offset >= ${start} AND kafka_offset < ${end}`,
    // Limits the rows that are read. `toStoredOffsets` then compares row by row.
    toRangeCondition(table, 'received_at', rows),
    ...(range === null ? [] : [toRangeCondition(table, range, rows)]),
    `(${key.map(({ expression }) => expression).join(', ')}) IN (${[...keys].map((each) => `(${each})`).join(', ')})`,
  ];
  const { hex } = ID_COLUMNS[table];
  const columns = `toString(kafka_offset) AS offset, toString(toUnixTimestamp64Milli(received_at)) AS received, ${hex} AS id`;
  return `SELECT DISTINCT ${columns} FROM ${table} WHERE ${conditions.join(' AND ')}`;
}

/** Offset, receipt time in epoch milliseconds, and the hexadecimal value of the column in `ID_COLUMNS`. */
export interface StoredRowId {
  readonly offset: string;
  readonly received: string;
  readonly id: string;
}

/** The offset is the last column of every table. */
const OFFSET_BYTES = 8;

const toKey = ({ offset, received, id }: StoredRowId) => `${offset} ${received} ${id}`;
const toHex = (value: ColumnValue | undefined) =>
  (Buffer.isBuffer(value) ? value : Buffer.from(String(value))).toString('hex').toUpperCase();

/** @returns the offsets of the given rows that are stored. A row from a lost log may have the same offset. */
export function toStoredOffsets(
  table: OffsetTable,
  { rows }: StoredRowsQuery,
  found: readonly StoredRowId[],
): Set<number> {
  const read = createColumnReader(table, ['received_at', ID_COLUMNS[table].column]);
  const keys = rows.map((row) => {
    const [received, id] = read(row);
    const offset = String(row.readBigUInt64LE(row.length - OFFSET_BYTES));
    return toKey({ offset, received: String(received), id: toHex(id) });
  });
  const expected = new Set(keys);
  return new Set(found.filter((each) => expected.has(toKey(each))).map(({ offset }) => Number(offset)));
}
