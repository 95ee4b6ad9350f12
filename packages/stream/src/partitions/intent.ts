import { fromMark, type LogMark, parseMark } from './log-mark.ts';

/** The end of a block, committed before the block is written; part of the metadata of a committed offset. */
export interface Intent {
  /** Exclusive end of the block; its start is the committed offset. */
  readonly end: number;
  /** Epoch milliseconds when the block was first named, by the clock of the process that named it. */
  readonly namedAtMs: number;
  /** Version of the transform that builds the block. */
  readonly transformVersion: number;
  /** The batch before its end. */
  readonly mark: LogMark | null;
  /**
   * Time of its first record, which is part of its tokens: retention may take that record before the block is built
   * again. Null for a block without records.
   */
  readonly firstTimestampMs: number | null;
  /** What its rows depended on besides the records, in its builder's format; null when there is nothing else. */
  readonly basis: string | null;
}

/** What is stored beside a committed offset. */
export interface CommitNote {
  /** The block under way; none for consumers that write no blocks. */
  readonly intent: Intent | null;
  /** The batch before the committed offset; null when it is unknown. */
  readonly mark: LogMark | null;
  /** Epoch milliseconds of the last decision about a log that was replaced; null when it never was. Part of tokens. */
  readonly decidedAtMs: number | null;
  /** True when the commit itself is that decision, and nothing was committed after it. */
  readonly isDecision: boolean;
  /**
   * How far the group had read (exclusive) when an operator decided about a log that was replaced. Rows of earlier
   * offsets may be stored, also of records that the log still has. Null once the group has read past it, and where
   * nothing was decided.
   */
  readonly triedTo: number | null;
  /** What the block before the offset left for the block after it, in its builder's format; null when nothing. */
  readonly carried: string | null;
}

export const NO_NOTE: CommitNote = {
  intent: null,
  mark: null,
  decidedAtMs: null,
  isDecision: false,
  triedTo: null,
  carried: null,
};

/** A release that reads a commit of a greater format stops that partition: building the block could write it twice. */
const FORMAT = 1;

/**
 * Metadata of a committed offset: `{v, m, e, t, s, f, n, b, g, d, u, c}`: format, mark; the intent's end, time,
 * transform version, first record's time, mark and basis; time of the last decision, whether this commit is one, up to
 * which offset rows may be stored from before it, and what the previous block carries. Absent values are omitted.
 */
export function toMetadata({ intent, mark, decidedAtMs, isDecision, triedTo, carried }: CommitNote): string {
  const basis = intent?.basis ?? null;
  return JSON.stringify({
    v: FORMAT,
    ...(mark === null ? {} : { m: fromMark(mark) }),
    ...(intent === null ? {} : { e: intent.end, t: intent.namedAtMs, s: intent.transformVersion }),
    ...(intent === null || intent.firstTimestampMs === null ? {} : { f: intent.firstTimestampMs }),
    ...(intent === null || intent.mark === null ? {} : { n: fromMark(intent.mark) }),
    ...(basis === null ? {} : { b: basis }),
    ...(decidedAtMs === null ? {} : { g: decidedAtMs }),
    ...(isDecision ? { d: 1 } : {}),
    ...(triedTo === null ? {} : { u: triedTo }),
    ...(carried === null ? {} : { c: carried }),
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

const toText = (value: unknown): string | null => (typeof value === 'string' ? value : null);

function parseIntent({ e, t, s, n, f, b }: Record<string, unknown>, offset: number): Intent | null {
  if (typeof e !== 'number' || typeof t !== 'number' || typeof s !== 'number' || e <= offset) return null;
  const firstTimestampMs = typeof f === 'number' ? f : null;
  return { end: e, namedAtMs: t, transformVersion: s, mark: parseMark(n), firstTimestampMs, basis: toText(b) };
}

/**
 * Reads what was committed with `offset`. An intent that ends at that offset is ignored.
 * @throws Error for metadata in a format that this version does not know: going on could write a block twice
 */
export function parseMetadata(metadata: string | null, offset: number): CommitNote {
  if (metadata === null || metadata === '') return NO_NOTE;
  let value: unknown;
  try {
    value = JSON.parse(metadata);
  } catch {
    value = null;
  }
  if (!isRecord(value) || value.v !== FORMAT) throw new Error(`unknown metadata at a committed offset: ${metadata}`);
  return {
    intent: parseIntent(value, offset),
    mark: parseMark(value.m),
    decidedAtMs: typeof value.g === 'number' ? value.g : null,
    isDecision: value.d === 1,
    triedTo: typeof value.u === 'number' ? value.u : null,
    carried: toText(value.c),
  };
}

/** What is stored beside committed offsets, and so whether a block is named before it is written. */
export interface IntentPolicy {
  /** @throws as `parseMetadata` */
  readonly parse: (metadata: string | null, offset: number) => CommitNote;
  readonly toText: (note: CommitNote) => string;
}

/** Stores everything. A deployment has no other policy. */
export const KEEP_INTENTS: IntentPolicy = { parse: parseMetadata, toText: toMetadata };

/** How far a group has read, as its commit tells. */
export interface ReadSoFar {
  readonly committed: number;
  /** True when something else than one of our consumers made the commit: then it is unknown what was read. */
  readonly isForeign: boolean;
  /** Exclusive end of what was read: of the block under way, else what is committed. */
  readonly end: number;
  /** The batch in front of `end`. */
  readonly mark: LogMark | null;
  /** Exclusive end of the offsets that may have rows, from this log or an earlier one. */
  readonly triedTo: number;
}

/**
 * Whether something else than one of our consumers made the commit. Ours have always stored a note beside the offset,
 * in every format and from the first commit on. Tools that move offsets leave the text empty or write words of their
 * own. A note in a later format is ours.
 */
function isForeignMetadata(metadata: string | null): boolean {
  if (metadata === null) return false;
  try {
    const value: unknown = JSON.parse(metadata);
    return !isRecord(value) || typeof value.v !== 'number';
  } catch {
    return true;
  }
}

/**
 * Reads how far a group has read. A commit in an unknown format says nothing about the log.
 * @param metadata null when the group has committed nothing; empty when the commit has none
 */
export function parseRead(committed: number, metadata: string | null): ReadSoFar {
  const isForeign = isForeignMetadata(metadata);
  try {
    const { intent, mark, triedTo } = parseMetadata(metadata, committed);
    const end = intent?.end ?? committed;
    return { committed, isForeign, end, mark: intent?.mark ?? mark, triedTo: Math.max(end, triedTo ?? 0) };
  } catch {
    return { committed, isForeign, end: committed, mark: null, triedTo: committed };
  }
}
