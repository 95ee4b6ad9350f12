import { fromMark, isSameMark, type LogMark, parseMark } from './log-mark.ts';

/**
 * What an operator decided about a partition that stands. It is stored as a committed offset of a group that nobody
 * ever joins, because for a group with members brokers accept commits from its members only. The stopped partition
 * finds it there and commits it in its own generation. So it needs no restart, and a later owner finds the decision
 * too.
 */
export interface OffsetDecision {
  /** Where reading goes on. */
  readonly from: number;
  /** The commit that it answers. If the group has committed anything else, the decision is over. */
  readonly answers: { readonly committed: number; readonly mark: LogMark | null };
  /** Epoch milliseconds. */
  readonly decidedAtMs: number;
  /** Offsets that may have rows from an earlier log, by this decision and earlier ones, the newest first. */
  readonly replaced: readonly ReplacedRange[];
}

/** Offsets from `start` to before `end` whose rows may come from a log that is gone. */
export interface ReplacedRange {
  readonly start: number;
  readonly end: number;
}

const FORMAT = 1;
/** Brokers keep 4 KiB of metadata; a range is at most 40 characters. */
const RANGES_MAX = 40;

/** The group that stores the decisions about another group. */
export const decisionGroupOf = (groupId: string): string => `${groupId}.offset-decisions`;

export function toDecisionMetadata({ answers, decidedAtMs, replaced }: OffsetDecision): string {
  const { committed, mark } = answers;
  const ranges = replaced.slice(0, RANGES_MAX).map(({ start, end }) => [start, end]);
  return JSON.stringify({ v: FORMAT, c: committed, m: mark && fromMark(mark), t: decidedAtMs, r: ranges });
}

function parseRange(value: unknown): ReplacedRange[] {
  const [start, end] = Array.isArray(value) ? value : [];
  return Number.isSafeInteger(start) && Number.isSafeInteger(end) ? [{ start, end }] : [];
}

/** Null for anything that is not a decision in a format that this version knows. */
export function parseDecision(from: number, metadata: string | null): OffsetDecision | null {
  let value: Record<string, unknown> | null;
  try {
    value = JSON.parse(metadata ?? '');
  } catch {
    return null;
  }
  if (from < 0 || value?.v !== FORMAT || typeof value.c !== 'number' || typeof value.t !== 'number') return null;
  return {
    from,
    answers: { committed: value.c, mark: parseMark(value.m) },
    decidedAtMs: value.t,
    replaced: Array.isArray(value.r) ? value.r.flatMap(parseRange) : [],
  };
}

/** True when a decision is about this very commit. */
export function isAnswer(decision: OffsetDecision, to: { committed: number; mark: LogMark | null }): boolean {
  const { committed, mark } = decision.answers;
  if (committed !== to.committed) return false;
  return mark === null || to.mark === null ? mark === to.mark : isSameMark(mark, to.mark);
}
