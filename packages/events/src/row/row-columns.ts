import { toUuidText, ZERO_KEY } from '@playline/contracts';
import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { EventTable } from '../store.ts';
import type { RowBuffer } from './row-buffer.ts';

/** A column value: a string, an integer or epoch milliseconds, or the bytes of a key or id. */
export type ColumnValue = string | number | Buffer;

interface Cursor {
  readonly row: Buffer;
  at: number;
}

function readLength(cursor: Cursor): number {
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = cursor.row[cursor.at++]!;
    length += (byte & 127) * 2 ** shift;
    if (byte < 128) return length;
  }
}

const takeBytes = (cursor: Cursor, count: number) => {
  cursor.at += count;
  return cursor.row.subarray(cursor.at - count, cursor.at);
};

const READERS: Readonly<Record<string, (cursor: Cursor) => ColumnValue>> = {
  String: (cursor) => takeBytes(cursor, readLength(cursor)).toString(),
  UUID: (cursor) => takeBytes(cursor, 16),
  'FixedString(16)': (cursor) => takeBytes(cursor, 16),
  "DateTime64(3, 'UTC')": (cursor) => Number(takeBytes(cursor, 8).readBigInt64LE()),
  UInt8: (cursor) => takeBytes(cursor, 1).readUInt8(),
  UInt16: (cursor) => takeBytes(cursor, 2).readUInt16LE(),
  UInt64: (cursor) => Number(takeBytes(cursor, 8).readBigUInt64LE()),
};

/** Returns readers for the columns up to index `last`. @throws Error for a type without a reader */
function getReaders(table: EventTable, last: number): ((cursor: Cursor) => ColumnValue)[] {
  return EVENT_TABLE_COLUMNS[table].slice(0, last + 1).map(({ name, type }) => {
    const read = READERS[type];
    if (read === undefined) throw new Error(`${table}.${name}: add a reader for the type ${type}`);
    return read;
  });
}

/** The byte range of a column in a row, including the length prefix of a string. */
export interface ColumnRange {
  readonly start: number;
  readonly end: number;
}

/** Creates a function that finds a column in a RowBinary row. @throws see `createColumnReader` */
export function createColumnFinder(table: EventTable, name: string): (row: Buffer) => ColumnRange {
  const index = EVENT_TABLE_COLUMNS[table].findIndex((column) => column.name === name);
  if (index === -1) throw new Error(`${table} has no column ${name}`);
  const readers = getReaders(table, index);
  return (row) => {
    const cursor = { row, at: 0 };
    let start = 0;
    for (const read of readers) {
      start = cursor.at;
      read(cursor);
    }
    return { start, end: cursor.at };
  };
}

/**
 * Creates a reader for some columns of a RowBinary row, in the given order. Slow, because it reads all preceding
 * columns.
 * @throws Error for an unknown column, or for a preceding column without a reader
 */
export function createColumnReader(table: EventTable, names: readonly string[]): (row: Buffer) => ColumnValue[] {
  const columns = EVENT_TABLE_COLUMNS[table];
  const indexes = names.map((name) => columns.findIndex((column) => column.name === name));
  if (indexes.includes(-1)) throw new Error(`${table} does not have all columns of ${names.join(', ')}`);
  const readers = getReaders(
    table,
    indexes.reduce((most, each) => Math.max(most, each), -1),
  );
  return (row) => {
    const cursor = { row, at: 0 };
    const values = readers.map((read) => read(cursor));
    return indexes.map((index) => values[index]!);
  };
}

const DAY_MS = 86_400_000;
/** Time columns that determine the tables' monthly or weekly partitions. */
const PARTITION_COLUMNS: Partial<Record<EventTable, string>> = {
  events: 'event_time',
  message_rejections: 'received_at',
};

/** Creates a reader for a row's day, which determines the ClickHouse partition; 0 for tables without partitions. */
export function createPartReader(table: EventTable): (row: Buffer) => number {
  const column = PARTITION_COLUMNS[table];
  if (column === undefined) return () => 0;
  const read = createColumnReader(table, [column]);
  return (row) => Math.floor(Number(read(row)[0]) / DAY_MS);
}

const readKeyColumns = createColumnReader('events', ['environment_id', 'message_id', 'identity_key']);

/** Returns the Kafka key of an event's record, by which a cluster selects the shard. */
export function readRecordKey(row: Buffer): Buffer {
  const [environment, id, identity] = readKeyColumns(row) as [string, Buffer, Buffer];
  if (!identity.equals(ZERO_KEY)) return Buffer.concat([Buffer.from(environment), identity]);
  // RowBinary contains each half of a UUID in reverse.
  const halves = [id.subarray(0, 8), id.subarray(8)].map((half) => Buffer.from(half).reverse());
  return Buffer.from(toUuidText(Buffer.concat(halves)));
}

const findKey = createColumnFinder('events', 'anonymous_key');
const findId = createColumnFinder('events', 'anonymous_id');

/** Removes the anonymous id and its key from the last row of `events`. Slow, but rarely called. */
export function clearAnonymousId(out: RowBuffer): void {
  const row = out.rowAt(out.rows - 1);
  const [key, id] = [findKey(row), findId(row)];
  row.fill(0, key.start, key.end);
  row[id.start] = 0;
  row.copyWithin(id.start + 1, id.end);
  const end = out.length - (id.end - id.start - 1);
  out.truncate(out.rows - 1);
  out.endRow(end);
}
