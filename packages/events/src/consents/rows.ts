import type { ConsentRecord, RejectionRecord } from '@playline/contracts';
import {
  type AuditRow,
  auditOfAccount,
  auditOfCollection,
  auditOfEntry,
  auditOfKey,
  auditOfProject,
  auditOfRateLimitKey,
  auditOfSignableKey,
} from '../audit/entries.ts';
import type { IsFenced, LoggedPlace, RecordRows } from '../record-rows.ts';
import type { RowBuffer } from '../row/row-buffer.ts';
import { rowBytesMax, writeInt64, writeKey, writeString, writeTime, writeUInt16 } from '../row/row-buffer.ts';

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

/** @throws RangeError when a value does not fit its column; `out` is then unchanged */
function addAuditRow(out: RowBuffer, row: AuditRow): void {
  const { projectId, environmentId, entryId, kind, object, action, actor, requestId, address, detail } = row;
  out.reserve(rowBytesMax(projectId, environmentId, entryId, kind, object, action, actor, requestId, address, detail));
  const target = out.bytes;
  let at = out.length;
  for (const text of [projectId, environmentId]) at = writeString(target, at, text);
  at = writeTime(target, at, row.happenedAt);
  for (const text of [entryId, kind, object]) at = writeString(target, at, text);
  at = writeInt64(target, at, row.revision);
  for (const text of [action, actor, requestId, address, detail]) at = writeString(target, at, text);
  out.endRow(at);
}

/**
 * The rows of `audit_log` that follow from a record. They do not contain its place in the log, so copies of a row fold
 * into one.
 */
function auditRows<R>(rowsOf: (record: R) => readonly AuditRow[]): RecordRows<R> {
  const addRows = (out: RowBuffer, record: R, _place: LoggedPlace) => {
    for (const row of rowsOf(record)) addAuditRow(out, row);
  };
  // These rows are about operators. They name no player, so no fence applies.
  return { tables: [{ table: 'audit_log', withoutFenced: (record) => record, addRows }] };
}

export const projectAuditRows = auditRows(auditOfProject);
export const keyAuditRows = auditRows(auditOfKey);
export const rateLimitKeyAuditRows = auditRows(auditOfRateLimitKey);
export const collectionAuditRows = auditRows(auditOfCollection);
export const accountAuditRows = auditRows(auditOfAccount);
export const signableKeyAuditRows = auditRows(auditOfSignableKey);
export const entryAuditRows = auditRows(auditOfEntry);
