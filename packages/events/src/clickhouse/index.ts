import { createClusterCheck, onEachNode, overAllNodes, quoteBytes, quoteText, toPartition } from '@playline/stores';
import {
  BLOCK_WRITER_LIMITS,
  type ClickHouse,
  type ClickHouseClient,
  type ClickHouseTarget,
  openClickHouse,
  toQuerySize,
} from '@playline/stores/clickhouse';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import { type ColumnValue, createColumnReader, readRecordKey } from '../row/row-columns.ts';
import type { EventStore, EventTable, OffsetTable, StoredRowsQuery } from '../store.ts';

export * from './event-counts.ts';
export * from './event-days.ts';

/** Bloom filters of the tables that inserts fill, also through materialized views. */
const BLOOM_FILTERS = ['alias_keys', 'carried_keys', 'message_ids', 'of_trace', 'person_keys', 'user_hashes'];

export const INSERT_SETTINGS = {
  // Deduplication takes two fifths of the insert time, and would remove offsets that `storedOffsets` expects.
  optimize_on_insert: 0,
  // Merges create them: the part of one block is small enough to be read without a filter.
  exclude_materialize_skip_indexes_on_insert: BLOOM_FILTERS.join(', '),
} as const;

/**
 * A query that lists the keys of this many rows requires about 100 MiB, and the rows of several partitions may be
 * searched simultaneously.
 */
const SEARCHED_ROWS_MAX = 5_000;

/** Opens an event store, which connects at the first call. */
export function openEventStore(target: ClickHouseTarget): EventStore {
  // In a cluster, ClickHouse divides the rows of a block among the shards, which keep its token.
  const store = openClickHouse(overAllNodes(target), BLOCK_WRITER_LIMITS);
  const nodes = onEachNode(target).map((node) => openClickHouse(node, BLOCK_WRITER_LIMITS));
  const check = createClusterCheck(target);
  return {
    async insert({ table, rows, token, signal }) {
      await check.assertOnce();
      await store.insertBlock({
        statement: insertStatement(table),
        body: rows,
        token,
        signal,
        settings: INSERT_SETTINGS,
      });
    },
    async storedOffsets(table, query) {
      const stored = new Set<number>();
      for (const [shard, rows] of divide(table, query.rows, nodes.length)) {
        const read = { node: nodes[shard]!, assertShard: () => check.assert(shard) };
        for (let from = 0; from < rows.length; from += SEARCHED_ROWS_MAX) {
          const searched = { ...query, rows: rows.slice(from, from + SEARCHED_ROWS_MAX) };
          for (const offset of await readOffsets(read, table, searched)) stored.add(offset);
        }
      }
      return stored;
    },
    ready: async () => (await store.ready()) && (await check.isMatching()),
    close: async () => {
      for (const each of [store, ...nodes]) await each.close();
    },
  };
}

/** Groups rows by shard, so that a node without any of them is not queried. All tables except `events` are on the home. */
function divide(table: OffsetTable, rows: readonly Buffer[], shards: number): Map<number, Buffer[]> {
  const isDivided = table === 'events' && shards > 1;
  return Map.groupBy(rows, (row) => (isDivided ? toPartition(readRecordKey(row), shards) : 0));
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

async function readOffsets(
  { node, assertShard }: { readonly node: ClickHouse; readonly assertShard: () => Promise<void> },
  table: OffsetTable,
  query: StoredRowsQuery,
): Promise<Set<number>> {
  const found = await node.read<StoredRowId>(storedOffsetsQuery(table, query));
  // After the read, because a missing row would be stored again.
  await assertShard();
  const stored = toStoredOffsets(table, query, found);
  if (stored.size === 0) return stored;
  if (table === 'events') {
    await node.call(() => rebuildDerived(node.client, query.rows));
    await node.call(() => recountDays(node.client, query.rows));
  }
  if (table === 'events' || table === 'message_rejections')
    await node.call(() => recount(node.client, table, query.rows));
  return stored;
}

async function run(client: ClickHouseClient, query: string): Promise<void> {
  await client.command({ query, clickhouse_settings: { max_query_size: toQuerySize(query), wait_end_of_query: 1 } });
}

/** Marks the minutes of the rows as not counted, as the materialized views of the table do. */
async function recount(client: ClickHouseClient, table: OffsetTable, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader(table, ['received_at']);
  const minutes = new Set(rows.map((row) => Math.floor(Number(read(row)[0]) / MINUTE_MS) * (MINUTE_MS / 1000)));
  const values = `arrayJoin([${[...minutes].join(', ')}]), now64(3, 'UTC')`;
  await run(client, `INSERT INTO counted_minutes (minute_at, stored_at) SELECT ${values}`);
}

const MINUTE_MS = 60_000;

/** Marks the days of the rows as not counted, as the materialized view does. */
async function recountDays(client: ClickHouseClient, rows: readonly Buffer[]): Promise<void> {
  const read = createColumnReader('events', ['environment_id', 'event_time']);
  const days = new Set(
    rows.map((row) => {
      const [environment, time] = read(row);
      return `(${quoteText(String(environment))}, '${new Date(Number(time)).toISOString().slice(0, 10)}')`;
    }),
  );
  const values = `(arrayJoin([${[...days].join(', ')}]) AS row).1, row.2, now64(3, 'UTC')`;
  await run(client, `INSERT INTO counted_days (environment_id, day, stored_at) SELECT ${values}`);
}

/** Each is filled by the materialized view `<table>_of_events`. */
const DERIVED_TABLES = ['identity_days', 'identities', 'session_days'];

/** Returns the query of each view. */
async function readDerivations(client: ClickHouseClient): Promise<[table: string, query: string][]> {
  const query = `SELECT name, as_select FROM system.tables WHERE database = currentDatabase() AND engine = 'MaterializedView'`;
  const result = await client.query({ query, format: 'JSONCompactEachRow' });
  const queries = new Map(await result.json<[string, string]>());
  return DERIVED_TABLES.map((table) => {
    const found = queries.get(`${table}_of_events`);
    if (found === undefined) throw new Error(`The database has no view ${table}_of_events.`);
    return [table, found];
  });
}

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
  const found = `(environment_id, event_name, toDate(event_time), identity_key) IN (${[...keys].join(', ')})`;
  for (const [table, derivation] of await readDerivations(client)) {
    const [columns, conditions] = derivation.split(/ FROM \S+ WHERE /);
    await run(client, `INSERT INTO ${table} ${columns} FROM events WHERE ${found} AND ${conditions}`);
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
