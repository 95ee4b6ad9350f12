import type { GroupPartition, OffsetDecision, ReplacedRange } from '@playline/stream';

/** Value of `--from`. */
export type StartPoint = 'earliest-unread' | 'end' | number;

/** The effects of a decision. */
export interface Plan {
  readonly decision: OffsetDecision;
  /** Sentences, most important first. */
  readonly description: readonly string[];
  /** Number of records in the log that will never be read. */
  readonly skipped: number;
}

/** Whether consumers wait for a decision of an operator. */
export const isReplaced = ({ finding }: GroupPartition): boolean =>
  finding.kind === 'shortened' || finding.kind === 'exchanged';

export const needsDecision = (found: GroupPartition): boolean =>
  isReplaced(found) || found.finding.kind === 'expired' || found.finding.kind === 'foreign';

/** The first record that was certainly not read, otherwise the log's first record. */
function firstUnread(found: GroupPartition): number {
  if (!needsDecision(found)) return Math.max(found.start, found.committed);
  return found.finding.kind === 'expired' ? found.start : (found.divergesAt ?? found.start);
}

function toOffset(found: GroupPartition, from: StartPoint): number {
  if (from === 'end') return found.end;
  return from === 'earliest-unread' ? firstUnread(found) : from;
}

/** Offsets that may have rows from the lost log. */
function replacedBy(found: GroupPartition): ReplacedRange[] {
  const start = firstUnread(found);
  return isReplaced(found) && found.readTo > start ? [{ start, end: found.readTo }] : [];
}

/** @throws RangeError for an offset that the log does not contain */
export function planDecision(found: GroupPartition, from: StartPoint, nowMs: number): Plan {
  const offset = toOffset(found, from);
  if (offset < found.start || offset > found.end)
    throw new RangeError(
      `${found.topic}/${found.partition} has offsets ${found.start} to ${found.end}: ${offset} is outside`,
    );
  const unread = firstUnread(found);
  const skipped = Math.max(0, offset - unread);
  const again = Math.max(0, Math.min(unread, found.committed) - offset);
  const isForeign = found.finding.kind === 'foreign';
  const replaced = replacedBy(found);
  const description = [
    `Reading continues at ${offset}; the log ends at ${found.end}, so ${found.end - offset} offsets are left.`,
    found.finding.kind === 'expired' &&
      `Offsets ${found.committed} to ${found.start - 1} are lost: retention deleted them before they were read.`,
    isReplaced(found) &&
      found.divergesAt === null &&
      'It is unknown where the log differs from the log that was read: records may be read again.',
    isForeign &&
      `It is unknown how far the log was read. --from ${found.committed} continues at that commit and skips unread records before ` +
        `that offset. Records that are read again: ${AGAIN}`,
    again > 0 && `Offsets ${offset} to ${offset + again - 1} are read again. ${AGAIN}`,
    skipped > 0 &&
      `Offsets ${unread} to ${offset - 1} ${isForeign ? 'may hold' : 'hold'} records that ` +
        `were not read and NEVER WILL BE: these ${skipped} offsets are skipped.`,
    ...replaced.map(
      ({ start, end }) => `Rows at offsets ${start} to ${end - 1} may be from the lost log. They are kept.`,
    ),
  ].filter((sentence) => sentence !== false);
  const forCommit = { committed: found.committed, mark: found.mark };
  const allReplaced = [...replaced, ...(found.decision?.replaced ?? [])];
  return { decision: { from: offset, forCommit, decidedAtMs: nowMs, replaced: allReplaced }, description, skipped };
}

const AGAIN =
  'A stored row is not written again; a row that a merge has deduplicated may be, and events_exact shows it once. ' +
  'A link fact that the graph has applied is not decided again.';
