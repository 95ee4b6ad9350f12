import { EVENT_TABLE_COLUMNS } from '../columns.ts';
import type { EventTable } from '../store.ts';

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

/**
 * Creates a reader of some columns of a RowBinary row, in the order asked for. A row is walked from its start to the
 * last of them: for questions about blocks that were tried before, not for the hot path.
 * @throws Error for a column that the table has not, or behind one of a type that nobody needed yet
 */
export function createColumnReader(table: EventTable, names: readonly string[]): (row: Buffer) => ColumnValue[] {
  const columns = EVENT_TABLE_COLUMNS[table];
  const places = names.map((name) => columns.findIndex((column) => column.name === name));
  if (places.includes(-1)) throw new Error(`${table} has not all of ${names.join(', ')}`);
  const readers = columns.slice(0, Math.max(-1, ...places) + 1).map(({ name, type }) => {
    const read = READERS[type];
    if (read === undefined) throw new Error(`${table}.${name}: nobody has needed a column of type ${type} yet`);
    return read;
  });
  return (row) => {
    const cursor = { row, at: 0 };
    const values = readers.map((read) => read(cursor));
    return places.map((place) => values[place]!);
  };
}
