import { quoteBytes, quoteText } from '@playline/stores';
import { type ColumnValue, createColumnReader } from '../row/row-columns.ts';
import type { OffsetTable, StoredQuestion } from '../store.ts';

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
const TOLD_BY: Record<OffsetTable, { readonly column: string; readonly hex: string }> = {
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
export function storedOffsetsQuery(table: OffsetTable, { partition, start, end, rows }: StoredQuestion): string {
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
  return `SELECT DISTINCT ${columns}, ${TOLD_BY[table].hex} AS told FROM ${table} WHERE ${conditions.join(' AND ')}`;
}

/** A row of the answer: offset, time of receipt in epoch milliseconds, and the hex of the column in `TOLD_BY`. */
export interface StoredPlace {
  readonly place: string;
  readonly received: string;
  readonly told: string;
}

/** The offset is the last column of every table. */
const OFFSET_BYTES = 8;

const nameOf = ({ place, received, told }: StoredPlace) => `${place} ${received} ${told}`;
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
  { rows }: StoredQuestion,
  found: readonly StoredPlace[],
): Set<number> {
  const read = createColumnReader(table, ['received_at', TOLD_BY[table].column]);
  const asked = rows.map((row) => {
    const [received, told] = read(row);
    const place = String(row.readBigUInt64LE(row.length - OFFSET_BYTES));
    return nameOf({ place, received: String(received), told: toHex(told) });
  });
  const wanted = new Set(asked);
  return new Set(found.filter((each) => wanted.has(nameOf(each))).map(({ place }) => Number(place)));
}
