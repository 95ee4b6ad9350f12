import {
  type ConsentRecord,
  decisionTextOf,
  type FenceQuery,
  type IdentityDecisionRecord,
  type RejectionRecord,
  ZERO_KEY,
} from '@playline/contracts';
import {
  type AuditRow,
  auditOfAccount,
  auditOfCollection,
  auditOfEntry,
  auditOfKey,
  auditOfProject,
  auditOfRateLimitKey,
  auditOfSignableKey,
} from './audit/entries.ts';
import {
  type RowBuffer,
  rowBytesMax,
  swapUuidBytes,
  writeByte,
  writeInt64,
  writeKey,
  writeString,
  writeTime,
  writeUInt16,
} from './row/row-buffer.ts';
import type { LogPosition } from './row/transcoder.ts';
import type { EventTable } from './store.ts';

export interface LoggedPosition extends LogPosition {
  /** Record timestamp in epoch milliseconds; the broker's time with LogAppendTime. */
  readonly timestampMs: number;
}

export type IsFenced = (query: FenceQuery) => boolean;

/** Converts records of one type to rows. Deterministic: a record at a position always results in the same rows. */
export interface RecordRows<R> {
  readonly tables: readonly TableRows<R>[];
}

export interface TableRows<R> {
  readonly table: EventTable;
  /** Returns the part of the record that may be stored, or null. */
  withoutFenced(record: R, isFenced: IsFenced): R | null;
  /** @throws RangeError if a value is out of range. The caller must then remove the rows added for the record. */
  readonly addRows: (out: RowBuffer, record: R, position: LoggedPosition) => void;
}

const OFFSET_BITS = 48n;
const STEP_BITS = 8n;

const fits = (value: number, bits: bigint) => Number.isSafeInteger(value) && value >= 0 && BigInt(value) < 1n << bits;

/**
 * Returns a version that orders the decisions of an environment: generation (8 bits), link offset (48), step (8).
 * @throws RangeError if a component is out of range
 */
export function toOverrideVersion(decision: Pick<IdentityDecisionRecord, 'generation' | 'offset' | 'step'>): bigint {
  const { generation, offset, step } = decision;
  if (!fits(generation, 8n) || !fits(offset, OFFSET_BITS) || !fits(step, STEP_BITS))
    throw new RangeError("the decision's position is out of range");
  return (BigInt(generation) << (OFFSET_BITS + STEP_BITS)) | (BigInt(offset) << STEP_BITS) | BigInt(step);
}

/** Adds the row of `identity_links`. @throws RangeError if a number is out of range, without changing `out` */
export function addLinkRow(out: RowBuffer, decision: IdentityDecisionRecord, position: LogPosition): void {
  toOverrideVersion(decision);
  if (!fits(decision.partition, 16n) || decision.moved.length > 65_535)
    throw new RangeError('the decision is out of range');
  const { environmentId, aKind, bKind, reason, traceId } = decision;
  const { link, outcome } = decisionTextOf(decision);
  out.reserve(rowBytesMax(environmentId, link, aKind, bKind, outcome, reason, traceId));
  const target = out.bytes;
  let at = writeString(target, out.length, environmentId);
  at = writeByte(target, at, decision.generation);
  at = writeUInt16(target, at, decision.partition);
  at = writeInt64(target, at, decision.offset);
  at = writeByte(target, at, decision.step);
  at = writeKey(target, at, decision.messageId);
  swapUuidBytes(target, at - 16);
  at = writeString(target, at, link);
  at = writeKey(target, at, decision.aKey);
  at = writeString(target, at, aKind);
  at = writeKey(target, at, decision.bKey);
  at = writeString(target, at, bKind);
  at = writeString(target, at, outcome);
  at = writeString(target, at, reason);
  at = writeKey(target, at, decision.root);
  at = writeUInt16(target, at, decision.moved.length);
  at = writeInt64(target, at, decision.eventTime);
  at = writeInt64(target, at, decision.receivedAt);
  at = writeString(target, at, traceId);
  at = writeUInt16(target, at, position.partition);
  out.endRow(writeInt64(target, at, position.offset));
}

/**
 * Adds a row of `identity_overrides` per moved identity and, for an unlink, per identity that stayed.
 * @throws RangeError if a number is out of range. Rows that were already added remain.
 */
export function addOverrideRows(out: RowBuffer, decision: IdentityDecisionRecord): void {
  const version = toOverrideVersion(decision);
  const { environmentId, root, moved, unlink } = decision;
  const add = (identities: IdentityDecisionRecord['moved'], person: Buffer) => {
    for (const { key, kind, linkedAt } of identities) {
      out.reserve(rowBytesMax(environmentId, kind));
      const target = out.bytes;
      let at = writeString(target, out.length, environmentId);
      at = writeKey(target, at, key);
      at = writeKey(target, at, person);
      at = writeString(target, at, kind);
      at = writeInt64(target, at, linkedAt);
      out.endRow(target.writeBigUInt64LE(version, at));
    }
  };
  add(moved, root);
  if (unlink !== null) add(unlink.stayed, unlink.stayedRoot);
}

/**
 * Adds a row of `identity_unlinks` per identity of a split person, or one row if no person was split.
 * @throws RangeError if a number is out of range. Rows that were already added remain.
 */
export function addUnlinkRows(out: RowBuffer, decision: IdentityDecisionRecord): void {
  const { environmentId, generation, offset, receivedAt, outcome, aKey, moved, unlink } = decision;
  if (unlink === null) return;
  toOverrideVersion(decision);
  const add = (identities: readonly { key: Buffer }[], side: string) => {
    for (const { key } of identities) {
      out.reserve(rowBytesMax(environmentId, side));
      const target = out.bytes;
      let at = writeString(target, out.length, environmentId);
      at = writeKey(target, at, key);
      at = writeByte(target, at, generation);
      at = writeInt64(target, at, offset);
      at = writeString(target, at, side);
      out.endRow(writeInt64(target, at, receivedAt));
    }
  };
  if (outcome !== 'linked') add([{ key: aKey }], 'none');
  add(moved, 'split');
  add(unlink.stayed, 'stayed');
}

/** Drops decisions about a fenced identity, and clears fenced person keys in other decisions. */
function withoutFencedSides(decision: IdentityDecisionRecord, isFenced: IsFenced): IdentityDecisionRecord | null {
  const { environmentId, aKey, bKey, root, eventTime: eventTimeMs, receivedAt: receivedAtMs } = decision;
  const isErased = (key: Buffer) => isFenced({ environmentId, key, eventTimeMs, receivedAtMs });
  if (isErased(aKey) || isErased(bKey)) return null;
  return isErased(root) ? { ...decision, root: ZERO_KEY } : decision;
}

/** Removes fenced identities from the moves. A moved identity has the time of its first link. */
function withoutFencedMoves(decision: IdentityDecisionRecord, isFenced: IsFenced): IdentityDecisionRecord | null {
  const { environmentId } = decision;
  return keepIdentities(
    decision,
    ({ key, linkedAt }) => !isFenced({ environmentId, key, eventTimeMs: linkedAt, receivedAtMs: linkedAt }),
  );
}

/** Removes fenced identities from an unlink. Every row has the time of the unlink. */
function withoutFencedUnlinks(decision: IdentityDecisionRecord, isFenced: IsFenced): IdentityDecisionRecord | null {
  const { environmentId, aKey, outcome, unlink, receivedAt } = decision;
  if (unlink === null) return null;
  const isKept = ({ key }: { key: Buffer }) =>
    !isFenced({ environmentId, key, eventTimeMs: receivedAt, receivedAtMs: receivedAt });
  if (outcome !== 'linked') return isKept({ key: aKey }) ? decision : null;
  return keepIdentities(decision, isKept);
}

/** Returns the decision with only the kept identities, or null if none is kept. */
function keepIdentities(
  decision: IdentityDecisionRecord,
  isKept: (identity: IdentityDecisionRecord['moved'][number]) => boolean,
): IdentityDecisionRecord | null {
  const { unlink } = decision;
  const [moved, stayed] = [decision.moved.filter(isKept), (unlink?.stayed ?? []).filter(isKept)];
  const kept = moved.length + stayed.length;
  if (kept === 0) return null;
  if (kept === decision.moved.length + (unlink?.stayed.length ?? 0)) return decision;
  return { ...decision, moved, unlink: unlink && { ...unlink, stayed } };
}

export const decisionRows: RecordRows<IdentityDecisionRecord> = {
  tables: [
    { table: 'identity_links', withoutFenced: withoutFencedSides, addRows: addLinkRow },
    { table: 'identity_overrides', withoutFenced: withoutFencedMoves, addRows: addOverrideRows },
    { table: 'identity_unlinks', withoutFenced: withoutFencedUnlinks, addRows: addUnlinkRows },
  ],
};

/**
 * Adds the row of `consent_log`. `logged_at` is the record timestamp.
 * @throws RangeError if a value is out of range, without changing `out`
 */
export function addConsentRow(out: RowBuffer, consent: ConsentRecord, position: LoggedPosition): void {
  const { environmentId, status, source, traceId } = consent;
  out.reserve(rowBytesMax(environmentId, status, source, traceId));
  const target = out.bytes;
  let at = writeString(target, out.length, environmentId);
  at = writeKey(target, at, consent.identityKey);
  at = writeString(target, at, status);
  at = writeString(target, at, source);
  at = writeTime(target, at, consent.receivedAt);
  at = writeTime(target, at, position.timestampMs);
  at = writeString(target, at, traceId);
  at = writeUInt16(target, at, position.partition);
  out.endRow(writeInt64(target, at, position.offset));
}

/** Drops a fenced identity's consent. A consent's time is when the gateway accepted it. */
function withoutFenced(consent: ConsentRecord, isFenced: IsFenced): ConsentRecord | null {
  const { environmentId, identityKey: key, receivedAt } = consent;
  return isFenced({ environmentId, key, eventTimeMs: receivedAt, receivedAtMs: receivedAt }) ? null : consent;
}

export const consentRows: RecordRows<ConsentRecord> = {
  tables: [{ table: 'consent_log', withoutFenced, addRows: addConsentRow }],
};

/**
 * Adds a row of `message_rejections` for one error.
 * @throws RangeError if a value is out of range, without changing `out`
 */
export function addRejectionRow(out: RowBuffer, rejection: RejectionRecord, position: LoggedPosition): void {
  const { environmentId, code, field, surface, library, libraryVersion, traceId } = rejection;
  const texts = [environmentId, code, field, surface, library, libraryVersion];
  out.reserve(rowBytesMax(environmentId, code, field, surface, library, libraryVersion, traceId));
  const target = out.bytes;
  let at = out.length;
  for (const text of texts) at = writeString(target, at, text);
  at = writeTime(target, at, rejection.receivedAt);
  at = writeString(target, at, traceId);
  at = writeUInt16(target, at, position.partition);
  out.endRow(writeInt64(target, at, position.offset));
}

export const rejectionRows: RecordRows<RejectionRecord> = {
  // Rejections have no identity, so no fence applies.
  tables: [{ table: 'message_rejections', withoutFenced: (record) => record, addRows: addRejectionRow }],
};

/** Adds a row of `audit_log`. @throws RangeError if a value is out of range, without changing `out` */
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

/** Rows of `audit_log` have no offset, so copies are merged. They contain no player ids, so no fence applies. */
function auditRows<R>(toAuditRows: (record: R) => readonly AuditRow[]): RecordRows<R> {
  const addRows = (out: RowBuffer, record: R) => {
    for (const row of toAuditRows(record)) addAuditRow(out, row);
  };
  return { tables: [{ table: 'audit_log', withoutFenced: (record) => record, addRows }] };
}

export const projectAuditRows = auditRows(auditOfProject);
export const keyAuditRows = auditRows(auditOfKey);
export const rateLimitKeyAuditRows = auditRows(auditOfRateLimitKey);
export const collectionAuditRows = auditRows(auditOfCollection);
export const accountAuditRows = auditRows(auditOfAccount);
export const signableKeyAuditRows = auditRows(auditOfSignableKey);
export const entryAuditRows = auditRows(auditOfEntry);
