import type { InsertColumn } from '../../columns.ts';

/** Decodes RowBinary rows by the columns of an insert. Ids and keys become hexadecimal, times numbers. */
export function readRows(bytes: Buffer, columns: readonly InsertColumn[]): Record<string, unknown>[] {
  let at = 0;
  const take = (count: number) => {
    if (at + count > bytes.length) throw new Error('the last row is cut off');
    at += count;
    return bytes.subarray(at - count, at);
  };
  const takeLength = () => {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = take(1)[0]!;
      length |= (byte & 127) << shift;
      if (byte < 128) return length;
    }
  };
  const readers: Record<string, () => unknown> = {
    String: () => take(takeLength()).toString(),
    UInt8: () => take(1)[0],
    UInt16: () => take(2).readUInt16LE(),
    UInt64: () => Number(take(8).readBigUInt64LE()),
    "DateTime64(3, 'UTC')": () => Number(take(8).readBigInt64LE()),
    UUID: () => Buffer.concat([take(8).reverse(), take(8).reverse()]).toString('hex'),
    'FixedString(16)': () => take(16).toString('hex'),
  };
  const rows: Record<string, unknown>[] = [];
  while (at < bytes.length) rows.push(Object.fromEntries(columns.map(({ name, type }) => [name, readers[type]?.()])));
  return rows;
}
