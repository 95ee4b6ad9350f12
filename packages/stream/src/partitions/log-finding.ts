import { isSameMark, type LogMark } from './log-mark.ts';

/** The result of comparing a committed offset with the log. */
export type Finding =
  /** The batch before the commit is where it was. */
  | { readonly kind: 'intact' }
  /** A tool committed this offset, not one of our consumers. Records before it may never have been read. */
  | { readonly kind: 'foreign'; readonly end: number }
  /** No comparison is possible: retention deleted the batch, or nothing was read yet. */
  | { readonly kind: 'unproven' }
  /** Retention took records that nobody had read. */
  | { readonly kind: 'expired'; readonly start: number }
  /** The log ends before the offset up to which it was read. */
  | { readonly kind: 'shortened'; readonly end: number }
  /**
   * There are other records now at the offsets that were read: the log was shortened and has grown again, or it was
   * exchanged.
   */
  | { readonly kind: 'exchanged'; readonly end: number };

/** What a log holds now. */
export interface LogState {
  readonly start: number;
  readonly end: number;
  /** The batch that now contains the mark's first offset; null when none does. */
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
  // Compaction leaves gaps, and may move the start of a batch forward. So a batch that starts later proves nothing.
  if (found === null || found.base > read.mark.base) return { kind: 'unproven' };
  return isSameMark(found, read.mark) ? { kind: 'intact' } : { kind: 'exchanged', end };
}

/** A finding as a sentence, for the operator who is alerted. */
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
      return 'nothing can be compared: retention deleted the batch that was read last';
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
