import { type GroupPartition, toFindingText } from '@playline/stream';
import { isReplaced } from '../offsets/plan.ts';

/** Offsets from `start` (inclusive) to `end` (exclusive). */
export interface OffsetRange {
  readonly start: number;
  readonly end: number;
}

/** Row counts for the offsets from `index * size` (inclusive) to `(index + 1) * size` (exclusive). */
export interface BucketCount {
  readonly partition: number;
  readonly index: number;
  readonly rows: number;
  /** Number of distinct offsets. */
  readonly offsets: number;
}

/** A range with missing or repeated rows. */
export interface SuspectRange extends OffsetRange {
  readonly hasGaps: boolean;
  readonly hasRepeats: boolean;
}

export const sizeOf = ({ start, end }: OffsetRange): number => end - start;

/**
 * Finds buckets that do not contain each offset exactly once, joined into ranges of at most `bucketsMax` buckets.
 * @param counts by bucket index; buckets without rows are absent
 */
export function findSuspectRanges(
  range: OffsetRange,
  counts: ReadonlyMap<number, BucketCount>,
  { bucketSize, bucketsMax }: { bucketSize: number; bucketsMax: number },
): SuspectRange[] {
  const suspects: { start: number; end: number; buckets: number; hasGaps: boolean; hasRepeats: boolean }[] = [];
  for (let index = Math.floor(range.start / bucketSize); index * bucketSize < range.end; index++) {
    const start = Math.max(range.start, index * bucketSize);
    const end = Math.min(range.end, (index + 1) * bucketSize);
    const { rows, offsets } = counts.get(index) ?? { rows: 0, offsets: 0 };
    const [hasGaps, hasRepeats] = [offsets < end - start, rows > offsets];
    if (!hasGaps && !hasRepeats) continue;
    const last = suspects.at(-1);
    if (last === undefined || last.end !== start || last.buckets === bucketsMax) {
      suspects.push({ start, end, buckets: 1, hasGaps, hasRepeats });
      continue;
    }
    last.end = end;
    last.buckets++;
    last.hasGaps ||= hasGaps;
    last.hasRepeats ||= hasRepeats;
  }
  return suspects;
}

/** Joins ranges that overlap or are closer than `distance`. @param ranges in ascending order of their starts */
export function joinRanges(ranges: readonly OffsetRange[], distance: number): OffsetRange[] {
  const joined: { start: number; end: number }[] = [];
  for (const { start, end } of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && start - last.end < distance) last.end = Math.max(last.end, end);
    else joined.push({ start, end });
  }
  return joined;
}

/** Creates a function that checks whether the ranges contain an offset. Offsets must be passed in ascending order. */
export function createRangeCursor(ranges: readonly OffsetRange[]): (offset: number) => boolean {
  let at = 0;
  return (offset) => {
    while (at < ranges.length && ranges[at]!.end <= offset) at++;
    const range = ranges[at];
    return range !== undefined && offset >= range.start;
  };
}

/** Adds an offset to ascending ranges, unless there are already `rangesMax` ranges. */
export function addOffset(ranges: { start: number; end: number }[], offset: number, rangesMax: number): void {
  const last = ranges.at(-1);
  if (last?.end === offset) last.end++;
  else if (ranges.length < rangesMax) ranges.push({ start: offset, end: offset + 1 });
}

/** A partition whose log was replaced. */
export interface ReplacedLog {
  /** Disjoint ascending ranges in which rows from the lost log may be stored, according to operator decisions. */
  readonly ranges: readonly OffsetRange[];
  /** Set until an operator decides: the cause, and the first offset at which the logs differ. */
  readonly undecided: { readonly finding: string; readonly divergesAt: number } | null;
}

/** Returns replaced logs by `topic/partition`. */
export function toReplacedLogs(partitions: readonly GroupPartition[]): ReadonlyMap<string, ReplacedLog> {
  const logs = new Map<string, ReplacedLog>();
  for (const found of partitions) {
    const replaced = (found.decision?.replaced ?? []).toSorted((a, b) => a.start - b.start);
    const ranges = joinRanges(replaced, 1);
    const finding = toFindingText(found.finding, found.committed);
    const undecided = isReplaced(found) ? { finding, divergesAt: found.divergesAt ?? found.start } : null;
    if (ranges.length > 0 || undecided !== null) logs.set(`${found.topic}/${found.partition}`, { ranges, undecided });
  }
  return logs;
}

/** Subtracts the ascending ranges in `cut` from a range. */
export function subtract({ start, end }: OffsetRange, cut: readonly OffsetRange[]): OffsetRange[] {
  const remaining: OffsetRange[] = [];
  let from = start;
  for (const each of cut) {
    if (each.start > from) remaining.push({ start: from, end: Math.min(each.start, end) });
    from = Math.max(from, each.end);
  }
  if (from < end) remaining.push({ start: from, end });
  return remaining.filter((range) => range.end > range.start);
}

/** Intersects a range with the ranges in `cut`. */
export const intersect = ({ start, end }: OffsetRange, cut: readonly OffsetRange[]): OffsetRange[] =>
  cut
    .map((each) => ({ start: Math.max(start, each.start), end: Math.min(end, each.end) }))
    .filter((range) => range.end > range.start);
