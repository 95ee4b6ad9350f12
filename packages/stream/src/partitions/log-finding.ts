import { isSameMark, type LogMark } from './log-mark.ts';

/** What a log says of the offset that a group has committed. */
export type Finding =
  /** The batch in front of the commit is where it was. */
  | { readonly kind: 'intact' }
  /** A tool committed this offset, no consumer of ours: records in front of it may never have been read. */
  | { readonly kind: 'foreign'; readonly end: number }
  /** Nothing can be compared: an older commit without a mark, or retention took its batch. */
  | { readonly kind: 'unproven' }
  /** Records that nobody has read are gone: retention took them. */
  | { readonly kind: 'expired'; readonly start: number }
  /** The log ends before what was read of it. */
  | { readonly kind: 'shortened'; readonly end: number }
  /** Other records stand where those that were read stood: the log was shortened and has grown since, or was exchanged. */
  | { readonly kind: 'exchanged'; readonly end: number };

/** What a log holds now. */
export interface LogState {
  readonly start: number;
  readonly end: number;
  /** The batch that holds the mark's first offset now; null where none does. */
  readonly found: LogMark | null;
}

/**
 * Compares a commit with the log.
 * @param read what the group has read: up to `end`, whose last batch was `mark`
 */
export function judgeLog(
  read: { committed: number; end: number; mark: LogMark | null; isForeign?: boolean },
  { start, end, found }: LogState,
): Finding {
  if (read.isForeign === true) return { kind: 'foreign', end };
  if (read.end > end) return { kind: 'shortened', end };
  if (read.committed < start) return { kind: 'expired', start };
  if (read.mark === null || read.mark.base < start) return { kind: 'unproven' };
  // Compaction leaves gaps and moves borders of batches forwards: a later batch proves nothing.
  if (found === null || found.base > read.mark.base) return { kind: 'unproven' };
  return isSameMark(found, read.mark) ? { kind: 'intact' } : { kind: 'exchanged', end };
}

/** A finding in words, for whoever is woken by it. */
export function toFindingText(finding: Finding, committed: number): string {
  switch (finding.kind) {
    case 'intact':
      return 'the log is the one that was read';
    case 'foreign':
      return (
        `offset ${committed} was committed by somebody else, without the note that our consumers leave: what was read ` +
        'is not known, and records in front of it may never have been'
      );
    case 'unproven':
      return 'nothing can be compared: retention took the batch that was read last, or an older release committed';
    case 'shortened':
      return `the log ends at ${finding.end}, before what was read of it (committed: ${committed}): it has lost its end`;
    case 'exchanged':
      return (
        `in front of the committed offset ${committed} stands another record than the one that was read ` +
        `(the log ends at ${finding.end}): it lost its end and has grown again, or was exchanged`
      );
    case 'expired':
      return (
        `the log begins at ${finding.start}, behind the committed offset ${committed}: ` +
        'retention took records that nobody had read'
      );
  }
}
