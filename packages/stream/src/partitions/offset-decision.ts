import { parseObject } from './intent.ts';
import { fromMark, isSameMark, type LogMark, parseMark } from './log-mark.ts';

/** The result of comparing a commit with the log. */
export type Finding =
  /** The batch before the commit is unchanged. */
  | { readonly kind: 'intact' }
  /** Another tool committed this offset. Records before it may never have been read. */
  | { readonly kind: 'foreign'; readonly end: number }
  /** No comparison is possible, because retention deleted the batch or nothing was read yet. */
  | { readonly kind: 'unproven' }
  /** Retention deleted unread records. */
  | { readonly kind: 'expired'; readonly start: number }
  /** The log was truncated: it ends before the offset up to which it was read. */
  | { readonly kind: 'shortened'; readonly end: number }
  /** The log has different records at offsets that were read: it was truncated and has grown again, or was replaced. */
  | { readonly kind: 'exchanged'; readonly end: number };

/**
 * Compares a commit with the log. The group has read up to `read.end`, and `read.mark` was its last batch. `found` is
 * the batch that now contains the first offset of `read.mark`.
 */
export function compareWithLog(
  read: { committed: number; end: number; mark: LogMark | null; isForeign?: boolean },
  { start, end, found }: { start: number; end: number; found: LogMark | null },
): Finding {
  if (read.isForeign === true) return { kind: 'foreign', end };
  if (read.end > end) return { kind: 'shortened', end };
  if (read.committed < start) return { kind: 'expired', start };
  if (read.mark === null || read.mark.base < start) return { kind: 'unproven' };
  // Compaction may move the start of a batch forward, so a batch that starts later proves nothing.
  if (found === null || found.base > read.mark.base) return { kind: 'unproven' };
  return isSameMark(found, read.mark) ? { kind: 'intact' } : { kind: 'exchanged', end };
}

export function toFindingText(finding: Finding, committed: number): string {
  switch (finding.kind) {
    case 'intact':
      return 'the log is unchanged';
    case 'foreign':
      return (
        `another tool committed offset ${committed} without consumer metadata: ` +
        'records before it may never have been read'
      );
    case 'unproven':
      return 'no comparison is possible: retention deleted the last batch that was read';
    case 'shortened':
      return `the log ends at ${finding.end}, before the last read offset (committed: ${committed}): it was truncated`;
    case 'exchanged':
      return (
        `the record before the committed offset ${committed} is not the one that was read ` +
        `(the log ends at ${finding.end}): the log was truncated and has grown again, or was replaced`
      );
    case 'expired':
      return (
        `the log starts at ${finding.start}, after the committed offset ${committed}: ` +
        'retention deleted unread records'
      );
  }
}

/**
 * An operator's decision about a paused partition. It is stored as a commit of a group without members, because brokers
 * accept commits for an active group only from its members. The paused partition then commits the offset of the
 * decision.
 */
export interface OffsetDecision {
  readonly from: number;
  /** The only commit to which the decision applies. */
  readonly forCommit: { readonly committed: number; readonly mark: LogMark | null };
  readonly decidedAtMs: number;
  /** Offsets that may have rows from an earlier log, from this and earlier decisions, newest first. */
  readonly replaced: readonly ReplacedRange[];
}

/** Offsets from `start` up to, but not including, `end`, whose rows may come from an earlier log. */
export interface ReplacedRange {
  readonly start: number;
  readonly end: number;
}

const FORMAT = 1;
/** Brokers store 4 KiB of metadata, and a range has at most 40 characters. */
const RANGES_MAX = 40;

/** Returns the name of the group that stores decisions about a group. */
export const decisionGroupOf = (groupId: string): string => `${groupId}.offset-decisions`;

export function toDecisionMetadata({ forCommit, decidedAtMs, replaced }: OffsetDecision): string {
  const { committed, mark } = forCommit;
  const ranges = replaced.slice(0, RANGES_MAX).map(({ start, end }) => [start, end]);
  return JSON.stringify({ v: FORMAT, c: committed, m: mark && fromMark(mark), t: decidedAtMs, r: ranges });
}

function parseRange(value: unknown): ReplacedRange[] {
  const [start, end] = Array.isArray(value) ? value : [];
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) ? [{ start, end }] : [];
}

/** Parses a stored decision. Returns null for any other value or format. */
export function parseDecision(from: number, metadata: string | null): OffsetDecision | null {
  const value = parseObject(metadata ?? '');
  if (from < 0 || value?.v !== FORMAT || typeof value.c !== 'number' || typeof value.t !== 'number') return null;
  return {
    from,
    forCommit: { committed: value.c, mark: parseMark(value.m) },
    decidedAtMs: value.t,
    replaced: Array.isArray(value.r) ? value.r.flatMap(parseRange) : [],
  };
}

export function isDecisionFor(decision: OffsetDecision, to: { committed: number; mark: LogMark | null }): boolean {
  const { committed, mark } = decision.forCommit;
  if (committed !== to.committed) return false;
  return mark === null || to.mark === null ? mark === to.mark : isSameMark(mark, to.mark);
}
