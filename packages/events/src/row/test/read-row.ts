import { EVENT_FIELDS } from '../../columns.ts';
import { createRowBinary } from './row-binary.ts';

/** Decodes a RowBinary row of `events` independently of the transcoder. Ids and keys are hexadecimal. */
export function readEventRow(row: Buffer): Record<string, unknown> {
  const { remaining, take, text, time, uuid, key } = createRowBinary(row);
  const readers = {
    string: text,
    time,
    uuid,
    key,
    boolean: () => take(1)[0] === 1,
    nullableDouble: () => (take(1)[0] === 1 ? null : take(8).readDoubleLE()),
  };
  const read = EVENT_FIELDS.map(({ name, kind }) => [name, readers[kind]()] as const);
  const position = { partition: take(2).readUInt16LE(), offset: Number(take(8).readBigUInt64LE()) };
  if (remaining() !== 0) throw new Error(`${remaining()} bytes remain`);
  return { ...Object.fromEntries(read), ...position };
}
