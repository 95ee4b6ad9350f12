import type { ConsentRecord } from '@playline/contracts';
import type { IsFenced, LoggedPlace, RecordRows } from '../record-rows.ts';
import type { RowBuffer } from '../row/row-buffer.ts';
import { rowBytesMax, writeInt64, writeKey, writeString, writeTime, writeUInt16 } from '../row/row-bytes.ts';

/**
 * Adds the row of `consent_log` for a change of a consent; `logged_at` is the record's own time, which the topic takes
 * from the broker.
 * @throws RangeError when a value does not fit its column; `out` is then unchanged
 */
export function addConsentRow(out: RowBuffer, consent: ConsentRecord, place: LoggedPlace): void {
  const { environmentId, status, source, traceId } = consent;
  out.reserve(rowBytesMax(environmentId, status, source, traceId));
  const target = out.bytes;
  let at = writeString(target, out.length, environmentId);
  at = writeKey(target, at, consent.identityKey);
  at = writeString(target, at, status);
  at = writeString(target, at, source);
  at = writeTime(target, at, consent.receivedAt);
  at = writeTime(target, at, place.timestampMs);
  at = writeString(target, at, traceId);
  at = writeUInt16(target, at, place.partition);
  out.endRow(writeInt64(target, at, place.offset));
}

/** A consent is about one identity. Its time is that of acceptance by the gateway. */
function withoutFenced(consent: ConsentRecord, isFenced: IsFenced): ConsentRecord | null {
  const { environmentId, identityKey: key, receivedAt } = consent;
  return isFenced({ environmentId, key, eventTimeMs: receivedAt, receivedAtMs: receivedAt }) ? null : consent;
}

export const consentRows: RecordRows<ConsentRecord> = {
  tables: [{ table: 'consent_log', withoutFenced, addRows: addConsentRow }],
};
