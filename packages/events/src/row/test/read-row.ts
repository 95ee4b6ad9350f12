import { EVENT_FIELDS } from '../fields.ts';

/** Decodes a RowBinary row of `events`, without code of the transcoder. Ids and keys become hexadecimal. */
export function readEventRow(row: Buffer): Record<string, unknown> {
  let at = 0;
  const take = (count: number) => {
    at += count;
    return row.subarray(at - count, at);
  };
  const takeLength = () => {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = take(1)[0]!;
      length |= (byte & 127) << shift;
      if (byte < 128) return length;
    }
  };
  const readers = {
    string: () => take(takeLength()).toString(),
    time: () => Number(take(8).readBigInt64LE()),
    uuid: () => Buffer.concat([take(8).reverse(), take(8).reverse()]).toString('hex'),
    key: () => take(16).toString('hex'),
    boolean: () => take(1)[0] === 1,
    nullableDouble: () => (take(1)[0] === 1 ? null : take(8).readDoubleLE()),
  };
  const read = EVENT_FIELDS.map(({ name, kind }) => [name, readers[kind]()] as const);
  const position = { partition: take(2).readUInt16LE(), offset: Number(take(8).readBigUInt64LE()) };
  if (at !== row.length) throw new Error(`${row.length - at} bytes are left`);
  return { ...Object.fromEntries(read), ...position };
}
