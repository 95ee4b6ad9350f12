import type { GroupPartition, OffsetDecision, ReplacedRange } from '@playline/stream';

/** The value of `--from`. */
export type StartPoint = 'earliest-unread' | 'end' | number;

/** A decision and its effects. */
export interface Plan {
  readonly decision: OffsetDecision;
  /** Sentences in order of importance. */
  readonly description: readonly string[];
  /** Number of offsets in the log that will never be read. */
  readonly skipped: number;
}

/** Whether the log was truncated or replaced. */
export const isReplaced = ({ finding }: GroupPartition): boolean =>
  finding.kind === 'shortened' || finding.kind === 'exchanged';

export const needsDecision = (found: GroupPartition): boolean =>
  isReplaced(found) || found.finding.kind === 'expired' || found.finding.kind === 'foreign';

/** Returns the first offset known to be unread, or the start of the log if unknown. */
function firstUnread(found: GroupPartition): number {
  if (!needsDecision(found)) return Math.max(found.start, found.committed);
  return found.finding.kind === 'expired' ? found.start : (found.divergesAt ?? found.start);
}

function toOffset(found: GroupPartition, from: StartPoint): number {
  if (from === 'end') return found.end;
  return from === 'earliest-unread' ? firstUnread(found) : from;
}

/** Returns the offsets at which rows from the lost log may be stored. */
function toReplacedRanges(found: GroupPartition): ReplacedRange[] {
  const start = firstUnread(found);
  return isReplaced(found) && found.readTo > start ? [{ start, end: found.readTo }] : [];
}

/** @throws RangeError for an offset that the log does not contain */
export function planDecision(found: GroupPartition, from: StartPoint, nowMs: number): Plan {
  const offset = toOffset(found, from);
  if (offset < found.start || offset > found.end)
    throw new RangeError(
      `offset ${offset} is out of range: ${found.topic}/${found.partition} contains offsets ${found.start} to ${found.end}`,
    );
  const unread = firstUnread(found);
  const skipped = Math.max(0, offset - unread);
  const reread = Math.max(0, Math.min(unread, found.committed) - offset);
  const isForeign = found.finding.kind === 'foreign';
  const replaced = toReplacedRanges(found);
  const description = [
    `Reading resumes at ${offset}, ${found.end - offset} offsets before the end of the log (${found.end}).`,
    found.finding.kind === 'expired' &&
      `Offsets ${found.committed} to ${found.start - 1} are lost: retention deleted them before they were read.`,
    isReplaced(found) &&
      found.divergesAt === null &&
      'The offset at which the two logs diverge is unknown: records may be read again.',
    isForeign &&
      `The number of records already read is unknown. --from ${found.committed} resumes at the committed offset and skips unread ` +
        `records before that offset. ${REREAD_NOTE}`,
    reread > 0 && `Offsets ${offset} to ${offset + reread - 1} are read again. ${REREAD_NOTE}`,
    skipped > 0 &&
      `Offsets ${unread} to ${offset - 1} ${isForeign ? 'may contain' : 'contain'} unread records, ` +
        `which WILL NEVER BE READ: ${skipped} offsets are skipped.`,
    ...replaced.map(
      ({ start, end }) =>
        `Rows at offsets ${start} to ${end - 1} may be from the lost log. These rows are not deleted.`,
    ),
  ].filter((sentence) => sentence !== false);
  const forCommit = { committed: found.committed, mark: found.mark };
  const allReplaced = [...replaced, ...(found.decision?.replaced ?? [])];
  return { decision: { from: offset, forCommit, decidedAtMs: nowMs, replaced: allReplaced }, description, skipped };
}

const REREAD_NOTE =
  'Rows that are already stored are not written again, except rows that a merge has deduplicated, which events_exact shows ' +
  'once. Link facts that were already applied are not decided again.';
