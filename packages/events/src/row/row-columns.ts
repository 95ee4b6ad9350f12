import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { EventTable } from '../store.ts';
import type { RowBuffer } from './row-buffer.ts';

/** A value of a row: text, a whole number or epoch milliseconds, or the bytes of a key or an id. */
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

const bytesOf = (cursor: Cursor, count: number) => {
  cursor.at += count;
  return cursor.row.subarray(cursor.at - count, cursor.at);
};

const READERS: Readonly<Record<string, (cursor: Cursor) => ColumnValue>> = {
  String: (cursor) => bytesOf(cursor, readLength(cursor)).toString(),
  UUID: (cursor) => bytesOf(cursor, 16),
  'FixedString(16)': (cursor) => bytesOf(cursor, 16),
  "DateTime64(3, 'UTC')": (cursor) => Number(bytesOf(cursor, 8).readBigInt64LE()),
  UInt8: (cursor) => bytesOf(cursor, 1).readUInt8(),
  UInt16: (cursor) => bytesOf(cursor, 2).readUInt16LE(),
  UInt64: (cursor) => Number(bytesOf(cursor, 8).readBigUInt64LE()),
};

/** Readers of the columns up to index `last`. @throws Error for a type without a reader */
function readersOf(table: EventTable, last: number): ((cursor: Cursor) => ColumnValue)[] {
  return EVENT_TABLE_COLUMNS[table].slice(0, last + 1).map(({ name, type }) => {
    const read = READERS[type];
    if (read === undefined) throw new Error(`${table}.${name}: add a reader of type ${type}`);
    return read;
  });
}

/** Bytes of a column in a row. Those of a string include its length prefix. */
export interface ColumnRange {
  readonly start: number;
  readonly end: number;
}

/** Creates a function that finds a column of a RowBinary row, by walking the row. @throws Error as `createColumnReader` */
export function createColumnFinder(table: EventTable, name: string): (row: Buffer) => ColumnRange {
  const index = EVENT_TABLE_COLUMNS[table].findIndex((column) => column.name === name);
  if (index === -1) throw new Error(`${table} has no ${name}`);
  const readers = readersOf(table, index);
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
 * Creates a reader of some columns of a RowBinary row, in the given order, by walking the row. Not for the hot path.
 * @throws Error for an unknown column, or for one behind a column without a reader
 */
export function createColumnReader(table: EventTable, names: readonly string[]): (row: Buffer) => ColumnValue[] {
  const columns = EVENT_TABLE_COLUMNS[table];
  const indexes = names.map((name) => columns.findIndex((column) => column.name === name));
  if (indexes.includes(-1)) throw new Error(`${table} has not all of ${names.join(', ')}`);
  const readers = readersOf(
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
/** Tables are partitioned by months or weeks of this column. */
const PARTED_BY: Partial<Record<EventTable, string>> = { events: 'event_time', message_rejections: 'received_at' };

/** Creates a reader of the day of a row, which lies in one ClickHouse partition, or 0 in a table without partitions. */
export function createPartReader(table: EventTable): (row: Buffer) => number {
  const column = PARTED_BY[table];
  if (column === undefined) return () => 0;
  const read = createColumnReader(table, [column]);
  return (row) => Math.floor(Number(read(row)[0]) / DAY_MS);
}

const findKey = createColumnFinder('events', 'anonymous_key');
const findId = createColumnFinder('events', 'anonymous_id');

/** Removes the anonymous id and its key from the last row of `events`. Rare, so the row is walked and its bytes moved. */
export function blankAnonymous(out: RowBuffer): void {
  const row = out.rowAt(out.rows - 1);
  const [key, id] = [findKey(row), findId(row)];
  row.fill(0, key.start, key.end);
  row[id.start] = 0;
  row.copyWithin(id.start + 1, id.end);
  const end = out.length - (id.end - id.start - 1);
  out.truncate(out.rows - 1);
  out.endRow(end);
}
