import type { InsertColumn } from '../../columns.ts';
import { createRowBinary } from './row-binary.ts';

/** Decodes RowBinary rows with the columns of an insert. Ids and keys are hexadecimal, times are numbers. */
export function readRows(bytes: Buffer, columns: readonly InsertColumn[]): Record<string, unknown>[] {
  const { remaining, take, text, time, uuid, key } = createRowBinary(bytes);
  const readers: Record<string, () => unknown> = {
    String: text,
    UInt8: () => take(1)[0],
    UInt16: () => take(2).readUInt16LE(),
    UInt64: () => Number(take(8).readBigUInt64LE()),
    "DateTime64(3, 'UTC')": time,
    UUID: uuid,
    'FixedString(16)': key,
  };
  const rows: Record<string, unknown>[] = [];
  while (remaining() > 0) rows.push(Object.fromEntries(columns.map(({ name, type }) => [name, readers[type]?.()])));
  return rows;
}
