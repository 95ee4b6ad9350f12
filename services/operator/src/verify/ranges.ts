/** From `start` to before `end`. */
export interface OffsetRange {
  readonly start: number;
  readonly end: number;
}

/** Stored rows of the offsets `index * size` to before `(index + 1) * size`. */
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
 * The parts of a range whose buckets do not have each offset exactly once, in pieces of at most `bucketsMax` buckets.
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

/** Joins ranges closer than `distance`, since a read fetches neighbours anyway. */
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
