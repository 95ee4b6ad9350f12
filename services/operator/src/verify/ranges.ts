import { type GroupPartition, toFindingText } from '@playline/stream';
import { isReplaced } from '../offsets/plan.ts';

/** From `start` (inclusive) to `end` (exclusive). */
export interface OffsetRange {
  readonly start: number;
  readonly end: number;
}

/** Stored rows of the offsets from `index * size` up to, but excluding, `(index + 1) * size`. */
export interface BucketCount {
  readonly partition: number;
  readonly index: number;
  readonly rows: number;
  /** Distinct offsets among the rows. */
  readonly offsets: number;
}

/** Offsets with missing or repeated rows. */
export interface Suspect extends OffsetRange {
  readonly hasGaps: boolean;
  readonly hasRepeats: boolean;
}

export const sizeOf = ({ start, end }: OffsetRange): number => end - start;

/**
 * The parts of a range whose buckets do not contain each offset exactly once, in parts of at most `bucketsMax` buckets.
 * @param counts within the range; buckets without rows are absent
 */
export function findSuspects(
  range: OffsetRange,
  counts: ReadonlyMap<number, BucketCount>,
  { bucketSize, bucketsMax }: { bucketSize: number; bucketsMax: number },
): Suspect[] {
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

/** Joins ranges closer than `distance`, because a read fetches neighbours anyway. */
export function joinRanges(ranges: readonly OffsetRange[], distance: number): OffsetRange[] {
  const joined: { start: number; end: number }[] = [];
  for (const { start, end } of ranges) {
    const last = joined.at(-1);
    if (last !== undefined && start - last.end < distance) last.end = end;
    else joined.push({ start, end });
  }
  return joined;
}

/** Whether ranges contain an offset, for offsets in ascending order. */
export function createRangeCursor(ranges: readonly OffsetRange[]): (offset: number) => boolean {
  let at = 0;
  return (offset) => {
    while (at < ranges.length && ranges[at]!.end <= offset) at++;
    const range = ranges[at];
    return range !== undefined && offset >= range.start;
  };
}

/** Adds an offset to ascending ranges; at most `rangesMax` are kept. */
export function addOffset(ranges: { start: number; end: number }[], offset: number, rangesMax: number): void {
  const last = ranges.at(-1);
  if (last?.end === offset) last.end++;
  else if (ranges.length < rangesMax) ranges.push({ start: offset, end: offset + 1 });
}

/** A partition whose log was replaced, or may have been. */
export interface ReplacedLog {
  /** Offsets that may have rows of the lost log, from operators' decisions; in order, without duplicates. */
  readonly ranges: readonly OffsetRange[];
  /** Set while there is no decision: what happened, and the first offset that differs from the log that was read. */
  readonly undecided: { readonly finding: string; readonly divergesAt: number } | null;
}

/** By `topic/partition`; partitions without any finding are absent. */
export function toReplacedLogs(partitions: readonly GroupPartition[]): ReadonlyMap<string, ReplacedLog> {
  const logs = new Map<string, ReplacedLog>();
  for (const found of partitions) {
    const ranges = joined(found.decision?.replaced ?? []);
    const finding = toFindingText(found.finding, found.committed);
    const undecided = isReplaced(found) ? { finding, divergesAt: found.divergesAt ?? found.start } : null;
    if (ranges.length > 0 || undecided !== null) logs.set(`${found.topic}/${found.partition}`, { ranges, undecided });
  }
  return logs;
}

function joined(ranges: readonly OffsetRange[]): OffsetRange[] {
  const found: { start: number; end: number }[] = [];
  for (const { start, end } of [...ranges].sort((one, other) => one.start - other.start)) {
    const last = found.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else found.push({ start, end });
  }
  return found;
}

/** A range without the parts in `cut`, which are in order. */
export function without({ start, end }: OffsetRange, cut: readonly OffsetRange[]): OffsetRange[] {
  const left: OffsetRange[] = [];
  let from = start;
  for (const each of cut) {
    if (each.start > from) left.push({ start: from, end: Math.min(each.start, end) });
    from = Math.max(from, each.end);
  }
  if (from < end) left.push({ start: from, end });
  return left.filter((range) => range.end > range.start);
}

/** The parts of a range that are in `cut`. */
export const within = ({ start, end }: OffsetRange, cut: readonly OffsetRange[]): OffsetRange[] =>
  cut
    .map((each) => ({ start: Math.max(start, each.start), end: Math.min(end, each.end) }))
    .filter((range) => range.end > range.start);
