import { type IdentityDecisionRecord, ZERO_KEY } from '@playline/contracts';
import type { IsFenced, RecordRows } from '../record-rows.ts';
import type { RowBuffer } from '../row/row-buffer.ts';
import { rowBytesMax, turnUuid, writeByte, writeInt64, writeKey, writeString, writeUInt16 } from '../row/row-bytes.ts';
import type { LogPosition } from '../row/transcoder.ts';

const OFFSET_BITS = 48n;
const STEP_BITS = 8n;

const fits = (value: number, bits: bigint) => Number.isSafeInteger(value) && value >= 0 && BigInt(value) < 1n << bits;

/**
 * Place of a decision among all decisions of its environment, so that the greatest is the latest:
 * 8 bits generation of the link topic, 48 bits offset of the link fact, 8 bits step.
 * @throws RangeError when a part does not fit
 */
export function toOverrideVersion(decision: Pick<IdentityDecisionRecord, 'generation' | 'offset' | 'step'>): bigint {
  const { generation, offset, step } = decision;
  if (!fits(generation, 8n) || !fits(offset, OFFSET_BITS) || !fits(step, STEP_BITS))
    throw new RangeError('place of a decision does not fit');
  return (BigInt(generation) << (OFFSET_BITS + STEP_BITS)) | (BigInt(offset) << STEP_BITS) | BigInt(step);
}

/**
 * Adds the row of `identity_links` for a decision.
 * @throws RangeError when a number does not fit its column; `out` is as it was
 */
export function addLinkRow(out: RowBuffer, decision: IdentityDecisionRecord, position: LogPosition): void {
  toOverrideVersion(decision);
  if (!fits(decision.partition, 16n) || decision.moved.length > 65_535) throw new RangeError('decision does not fit');
  const { environmentId, link, aKind, bKind, outcome, reason, traceId } = decision;
  out.reserve(rowBytesMax(environmentId, link, aKind, bKind, outcome, reason, traceId));
  const target = out.bytes;
  let at = writeString(target, out.length, environmentId);
  at = writeByte(target, at, decision.generation);
  at = writeUInt16(target, at, decision.partition);
  at = writeInt64(target, at, decision.offset);
  at = writeByte(target, at, decision.step);
  at = writeKey(target, at, decision.messageId);
  turnUuid(target, at - 16);
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
 * Adds a row of `identity_overrides` for every identity whose person the decision changed.
 * @throws RangeError when a number does not fit its column; rows added before it stay
 */
export function addOverrideRows(out: RowBuffer, decision: IdentityDecisionRecord): void {
  const version = toOverrideVersion(decision);
  for (const { key, kind, linkedAt } of decision.moved) {
    out.reserve(rowBytesMax(decision.environmentId, kind));
    const target = out.bytes;
    let at = writeString(target, out.length, decision.environmentId);
    at = writeKey(target, at, key);
    at = writeKey(target, at, decision.root);
    at = writeString(target, at, kind);
    at = writeInt64(target, at, linkedAt);
    out.endRow(target.writeBigUInt64LE(version, at));
  }
}

/** A decision is about its two sides; others may still have the key of somebody erased for that of their person. */
function withoutFencedSides(decision: IdentityDecisionRecord, isFenced: IsFenced): IdentityDecisionRecord | null {
  const { environmentId, aKey, bKey, root, eventTime: eventTimeMs, receivedAt: receivedAtMs } = decision;
  const isErased = (key: Buffer) => isFenced({ environmentId, key, eventTimeMs, receivedAtMs });
  if (isErased(aKey) || isErased(bKey)) return null;
  return isErased(root) ? { ...decision, root: ZERO_KEY } : decision;
}

/** Whom a decision moved has a row of their own, as old as their first link. */
function withoutFencedMoves(decision: IdentityDecisionRecord, isFenced: IsFenced): IdentityDecisionRecord | null {
  const { environmentId } = decision;
  const moved = decision.moved.filter(
    ({ key, linkedAt }) => !isFenced({ environmentId, key, eventTimeMs: linkedAt, receivedAtMs: linkedAt }),
  );
  if (moved.length === 0) return null;
  return moved.length === decision.moved.length ? decision : { ...decision, moved };
}

export const decisionRows: RecordRows<IdentityDecisionRecord> = {
  tables: [
    { table: 'identity_links', withoutFenced: withoutFencedSides, addRows: addLinkRow },
    { table: 'identity_overrides', withoutFenced: withoutFencedMoves, addRows: addOverrideRows },
  ],
};
