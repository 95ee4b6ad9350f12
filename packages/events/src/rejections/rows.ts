import type { RejectionRecord } from '@playline/contracts';
import type { LoggedPlace, RecordRows } from '../record-rows.ts';
import type { RowBuffer } from '../row/row-buffer.ts';
import { rowBytesMax, writeInt64, writeString, writeTime, writeUInt16 } from '../row/row-bytes.ts';

/**
 * Adds the row of `message_rejections` for one error of a rejected message.
 * @throws RangeError when a value does not fit its column; `out` is then unchanged
 */
export function addRejectionRow(out: RowBuffer, rejection: RejectionRecord, place: LoggedPlace): void {
  const { environmentId, code, field, surface, library, libraryVersion, traceId } = rejection;
  const texts = [environmentId, code, field, surface, library, libraryVersion];
  out.reserve(rowBytesMax(environmentId, code, field, surface, library, libraryVersion, traceId));
  const target = out.bytes;
  let at = out.length;
  for (const text of texts) at = writeString(target, at, text);
  at = writeTime(target, at, rejection.receivedAt);
  at = writeString(target, at, traceId);
  at = writeUInt16(target, at, place.partition);
  out.endRow(writeInt64(target, at, place.offset));
}

export const rejectionRows: RecordRows<RejectionRecord> = {
  // A rejection contains no identity, so no fence applies.
  tables: [{ table: 'message_rejections', withoutFenced: (record) => record, addRows: addRejectionRow }],
};
