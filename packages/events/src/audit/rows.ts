import type { LoggedPlace, RecordRows } from '../record-rows.ts';
import type { RowBuffer } from '../row/row-buffer.ts';
import { rowBytesMax, writeInt64, writeString, writeTime } from '../row/row-bytes.ts';
import {
  type AuditRow,
  auditOfAccount,
  auditOfCollection,
  auditOfEntry,
  auditOfKey,
  auditOfProject,
  auditOfRateLimitKey,
  auditOfSignableKey,
} from './entries.ts';

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
