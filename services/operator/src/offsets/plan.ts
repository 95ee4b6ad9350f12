import type { GroupPartition, OffsetDecision, ReplacedRange } from '@playline/stream';

/** Where reading continues, as the value of an option. */
export type From = 'earliest-unread' | 'end' | number;

/** The effects of a decision, shown before it is made. */
export interface Plan {
  readonly decision: OffsetDecision;
  /** Sentences, the most important first. */
  readonly says: readonly string[];
  /** Number of records in the log that were not read and never will be. */
  readonly passesOver: number;
}

/** True when the group's consumers do not read this partition until an operator decides. */
export const isReplaced = ({ finding }: GroupPartition): boolean =>
  finding.kind === 'shortened' || finding.kind === 'exchanged';

export const needsDecision = (at: GroupPartition): boolean =>
  isReplaced(at) || at.finding.kind === 'expired' || at.finding.kind === 'foreign';

/** The first record that was certainly not read, if the log shows it; otherwise the log's first record. */
function firstUnread(at: GroupPartition): number {
  if (!needsDecision(at)) return Math.max(at.start, at.committed);
  return at.finding.kind === 'expired' ? at.start : (at.partsAt ?? at.start);
}

function toOffset(at: GroupPartition, from: From): number {
  if (from === 'end') return at.end;
  return from === 'earliest-unread' ? firstUnread(at) : from;
}

/** Offsets that may have rows of the lost log: from where the two logs diverge to what was read of the old one. */
function replacedBy(at: GroupPartition): ReplacedRange[] {
  const start = firstUnread(at);
  return isReplaced(at) && at.readTo > start ? [{ start, end: at.readTo }] : [];
}

/**
 * Plans a decision and all its effects.
 * @throws RangeError for an offset that the log does not have
 */
export function planDecision(at: GroupPartition, from: From, nowMs: number): Plan {
  const offset = toOffset(at, from);
  if (offset < at.start || offset > at.end)
    throw new RangeError(`${at.topic}/${at.partition} holds ${at.start} to ${at.end}: ${offset} is outside`);
  const unread = firstUnread(at);
  const passesOver = Math.max(0, offset - unread);
  const again = Math.max(0, Math.min(unread, at.committed) - offset);
  const isForeign = at.finding.kind === 'foreign';
  const unknown = isReplaced(at) && at.partsAt === null;
  const replaced = [...replacedBy(at), ...(at.decision?.replaced ?? [])];
  const says = [
    `Reading goes on at ${offset}; the log ends at ${at.end}, so ${at.end - offset} offsets come next.`,
    ...(at.finding.kind === 'expired'
      ? [`Offsets ${at.committed} to ${at.start - 1} are gone: retention took them, and nobody has read them.`]
      : []),
    ...(unknown
      ? ['Where the log parts from the one that was read is not known: records may be read that were before.']
      : []),
    ...(isForeign
      ? [
          `How far it was read is not known; --from ${at.committed} goes on at that commit, and leaves out what nobody had ` +
            `read in front of it. What is read a second time: ${AGAIN}`,
        ]
      : []),
    ...(again > 0 ? [`Offsets ${offset} to ${offset + again - 1} are read again. ${AGAIN}`] : []),
    ...(passesOver > 0
      ? [
          `Offsets ${unread} to ${offset - 1} ${isForeign ? 'may hold' : 'hold'} records that nobody has ` +
            `read, AND NOBODY WILL: these ${passesOver} offsets are passed over.`,
        ]
      : []),
    ...replacedBy(at).map(
      ({ start, end }) => `Rows at offsets ${start} to ${end - 1} may be of the log that is gone. They stay.`,
    ),
  ];
  const answers = { committed: at.committed, mark: at.mark };
  return { decision: { from: offset, answers, decidedAtMs: nowMs, replaced }, says, passesOver };
}

const AGAIN =
  'A row that stands is found and left out; one that a merge has folded into another copy may be written again beside ' +
  'it, which events_exact shows once. A link fact that the graph has applied is not decided again.';
