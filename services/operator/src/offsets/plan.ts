import type { GroupPartition, OffsetDecision, ReplacedRange } from '@playline/stream';

/** Value of `--from`. */
export type StartPoint = 'earliest-unread' | 'end' | number;

/** The effects of a decision. */
export interface Plan {
  readonly decision: OffsetDecision;
  /** Sentences, the most important first. */
  readonly description: readonly string[];
  /** Records of the log that will never be read. */
  readonly skipped: number;
}

/** Whether consumers wait for a decision of an operator. */
export const isReplaced = ({ finding }: GroupPartition): boolean =>
  finding.kind === 'shortened' || finding.kind === 'exchanged';

export const needsDecision = (at: GroupPartition): boolean =>
  isReplaced(at) || at.finding.kind === 'expired' || at.finding.kind === 'foreign';

/** The first record that was certainly not read, otherwise the log's first record. */
function firstUnread(at: GroupPartition): number {
  if (!needsDecision(at)) return Math.max(at.start, at.committed);
  return at.finding.kind === 'expired' ? at.start : (at.divergesAt ?? at.start);
}

function toOffset(at: GroupPartition, from: StartPoint): number {
  if (from === 'end') return at.end;
  return from === 'earliest-unread' ? firstUnread(at) : from;
}

/** Offsets that may have rows of the lost log. */
function replacedBy(at: GroupPartition): ReplacedRange[] {
  const start = firstUnread(at);
  return isReplaced(at) && at.readTo > start ? [{ start, end: at.readTo }] : [];
}

/** @throws RangeError for an offset that the log does not have */
export function planDecision(at: GroupPartition, from: StartPoint, nowMs: number): Plan {
  const offset = toOffset(at, from);
  if (offset < at.start || offset > at.end)
    throw new RangeError(`${at.topic}/${at.partition} has offsets ${at.start} to ${at.end}: ${offset} is outside`);
  const unread = firstUnread(at);
  const skipped = Math.max(0, offset - unread);
  const again = Math.max(0, Math.min(unread, at.committed) - offset);
  const isForeign = at.finding.kind === 'foreign';
  const replaced = replacedBy(at);
  const description = [
    `Reading continues at ${offset}; the log ends at ${at.end}, so ${at.end - offset} offsets are left.`,
    at.finding.kind === 'expired' &&
      `Offsets ${at.committed} to ${at.start - 1} are lost: retention deleted them before they were read.`,
    isReplaced(at) &&
      at.divergesAt === null &&
      'It is unknown where the log differs from the one that was read: records may be read again.',
    isForeign &&
      `It is unknown how far it was read. --from ${at.committed} continues at that commit and skips unread records before ` +
        `it. Records that are read again: ${AGAIN}`,
    again > 0 && `Offsets ${offset} to ${offset + again - 1} are read again. ${AGAIN}`,
    skipped > 0 &&
      `Offsets ${unread} to ${offset - 1} ${isForeign ? 'may hold' : 'hold'} records that ` +
        `were not read and NEVER WILL BE: these ${skipped} offsets are skipped.`,
    ...replaced.map(
      ({ start, end }) => `Rows at offsets ${start} to ${end - 1} may be from the lost log. They are kept.`,
    ),
  ].filter((sentence) => sentence !== false);
  const forCommit = { committed: at.committed, mark: at.mark };
  const all = [...replaced, ...(at.decision?.replaced ?? [])];
  return { decision: { from: offset, forCommit, decidedAtMs: nowMs, replaced: all }, description, skipped };
}

const AGAIN =
  'A stored row is not written again; one that a merge has folded into another copy may be, and events_exact shows it once. ' +
  'A link fact that the graph has applied is not decided again.';
