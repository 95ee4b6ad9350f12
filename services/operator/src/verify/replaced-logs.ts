import { type GroupPartition, toFindingText } from '@playline/stream';
import { isReplaced } from '../offsets/plan.ts';
import type { OffsetRange } from './ranges.ts';

/** What is known of one partition whose log was replaced, or may have been. */
export interface ReplacedLog {
  /** Offsets that may have rows of the lost log, from decisions of operators; in order, without duplicates. */
  readonly ranges: readonly OffsetRange[];
  /** Set while there is no decision: what happened, and the first offset that differs from the log that was read. */
  readonly undecided: { readonly finding: string; readonly divergesAt: number } | null;
}

/** By `topic/partition`; partitions without any finding are absent. */
export function toReplacedLogs(partitions: readonly GroupPartition[]): ReadonlyMap<string, ReplacedLog> {
  const logs = new Map<string, ReplacedLog>();
  for (const at of partitions) {
    const ranges = joined(at.decision?.replaced ?? []);
    const finding = toFindingText(at.finding, at.committed);
    const undecided = isReplaced(at) ? { finding, divergesAt: at.divergesAt ?? at.start } : null;
    if (ranges.length > 0 || undecided !== null) logs.set(`${at.topic}/${at.partition}`, { ranges, undecided });
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
