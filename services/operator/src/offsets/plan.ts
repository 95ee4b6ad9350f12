import type { GroupPartition, OffsetDecision, ReplacedRange } from '@playline/stream';

/** Where reading continues, as the value of an option. */
export type StartPoint = 'earliest-unread' | 'end' | number;

/** The effects of a decision, shown before it is made. */
export interface Plan {
  readonly decision: OffsetDecision;
  /** Sentences, the most important first. */
  readonly description: readonly string[];
  /** Number of records in the log that were not read and never will be. */
  readonly skipped: number;
}

/** True when the group's consumers do not read this partition until an operator decides. */
export const isReplaced = ({ finding }: GroupPartition): boolean =>
  finding.kind === 'shortened' || finding.kind === 'exchanged';

export const needsDecision = (at: GroupPartition): boolean =>
  isReplaced(at) || at.finding.kind === 'expired' || at.finding.kind === 'foreign';

/** The first record that was certainly not read, if the log shows it; otherwise the log's first record. */
function firstUnread(at: GroupPartition): number {
  if (!needsDecision(at)) return Math.max(at.start, at.committed);
  return at.finding.kind === 'expired' ? at.start : (at.divergesAt ?? at.start);
}

function toOffset(at: GroupPartition, from: StartPoint): number {
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
export function planDecision(at: GroupPartition, from: StartPoint, nowMs: number): Plan {
  const offset = toOffset(at, from);
  if (offset < at.start || offset > at.end)
    throw new RangeError(`${at.topic}/${at.partition} holds ${at.start} to ${at.end}: ${offset} is outside`);
  const unread = firstUnread(at);
  const passesOver = Math.max(0, offset - unread);
  const again = Math.max(0, Math.min(unread, at.committed) - offset);
  const isForeign = at.finding.kind === 'foreign';
  const unknown = isReplaced(at) && at.divergesAt === null;
  const replaced = [...replacedBy(at), ...(at.decision?.replaced ?? [])];
  const says = [
    `Reading continues at ${offset}; the log ends at ${at.end}, so ${at.end - offset} offsets are left.`,
    ...(at.finding.kind === 'expired'
      ? [`Offsets ${at.committed} to ${at.start - 1} are gone: retention deleted them before they were read.`]
      : []),
    ...(unknown
      ? ['It is not known where the log differs from the one that was read: records may be read again.']
      : []),
    ...(isForeign
      ? [
          `It is not known how far it was read. --from ${at.committed} continues at that commit, and skips unread records before ` +
            `it. Of records that are read again: ${AGAIN}`,
        ]
      : []),
    ...(again > 0 ? [`Offsets ${offset} to ${offset + again - 1} are read again. ${AGAIN}`] : []),
    ...(passesOver > 0
      ? [
          `Offsets ${unread} to ${offset - 1} ${isForeign ? 'may hold' : 'hold'} records that ` +
            `were not read and NEVER WILL BE: these ${passesOver} offsets are skipped.`,
        ]
      : []),
    ...replacedBy(at).map(
      ({ start, end }) => `Rows at offsets ${start} to ${end - 1} may be from the log that is gone. They are kept.`,
    ),
  ];
  const answers = { committed: at.committed, mark: at.mark };
  return {
    decision: { from: offset, forCommit: answers, decidedAtMs: nowMs, replaced },
    description: says,
    skipped: passesOver,
  };
}

const AGAIN =
  'A row that is stored is found and not written again; one that a merge has folded into another copy may be, and ' +
  'events_exact shows it once. A link fact that the graph has applied is not decided again.';
