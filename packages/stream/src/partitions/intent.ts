import { fromMark, type LogMark, parseMark } from './log-mark.ts';

/** A block named before it is written, as it stands in the metadata of a committed offset. */
export interface Intent {
  /** Exclusive end of the block; its start is the committed offset. */
  readonly end: number;
  /** Epoch milliseconds when the block was named first, by the clock of whoever named it. */
  readonly namedAtMs: number;
  /** Version of the transform that builds the block. */
  readonly transformVersion: number;
  /** The batch in front of its end. */
  readonly mark: LogMark | null;
  /**
   * Time of its first record, which is part of its tokens: retention may take that record before the block is built again.
   * Null in commits of releases before, and for a block without records.
   */
  readonly firstTimestampMs: number | null;
  /** What its rows were made of besides the records, in its builder's words; null where they need nothing else. */
  readonly basis: string | null;
}

/** What stands beside a committed offset. */
export interface CommitNote {
  /** The block under way; none for consumers that write no blocks. */
  readonly intent: Intent | null;
  /** The batch in front of the committed offset; null when nobody knows. */
  readonly mark: LogMark | null;
  /** Epoch milliseconds of the last decision about a log that was replaced; null when it never was. Part of tokens. */
  readonly decidedAtMs: number | null;
  /** The offset itself is that decision, and nothing has been committed behind it yet. */
  readonly isDecision: boolean;
  /**
   * How far the group had read (exclusive) when an operator decided about a log that was replaced. Rows of earlier
   * offsets may be stored, also of records that the log still has. Null once the group has read past it, and where
   * nothing was decided.
   */
  readonly triedTo: number | null;
  /** What the block in front of the offset left for the one behind it, in its builder's words; null where nothing is. */
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

const FORMAT = 2;
/** Of releases whose commits say nothing of the log: such a commit is believed once, and the next one has a mark. */
const FORMAT_WITHOUT_MARKS = 1;
/**
 * Of blocks whose rows depend on more than their records. A release that does not know it must not build such a block, and
 * stands; a commit that says nothing of the kind is written in the format before, which that release reads.
 */
const FORMAT_WITH_BASIS = 3;
const FORMATS: readonly unknown[] = [FORMAT_WITHOUT_MARKS, FORMAT, FORMAT_WITH_BASIS];

/**
 * Metadata of a committed offset: `{v, m, e, t, s, f, n, b, g, d, u, c}` for format, mark, the intent's end, time,
 * transform version, first record's time, mark and basis, time of the last decision, whether this is one, up to where rows
 * may stand from before it, and what the block before has left. What is not there is left out. A release before passes
 * over what it does not know.
 */
export function toMetadata({ intent, mark, decidedAtMs, isDecision, triedTo, carried }: CommitNote): string {
  const basis = intent?.basis ?? null;
  return JSON.stringify({
    v: basis === null && carried === null ? FORMAT : FORMAT_WITH_BASIS,
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
 * Reads what was committed with `offset`. An intent that ends there is none.
 * @throws Error for metadata of a format that this version does not know: going on could write a block twice
 */
export function parseMetadata(metadata: string | null, offset: number): CommitNote {
  if (metadata === null || metadata === '') return NO_NOTE;
  let value: unknown;
  try {
    value = JSON.parse(metadata);
  } catch {
    value = null;
  }
  if (!isRecord(value) || !FORMATS.includes(value.v))
    throw new Error(`unknown metadata at a committed offset: ${metadata}`);
  return {
    intent: parseIntent(value, offset),
    mark: parseMark(value.m),
    decidedAtMs: typeof value.g === 'number' ? value.g : null,
    isDecision: value.d === 1,
    triedTo: typeof value.u === 'number' ? value.u : null,
    carried: toText(value.c),
  };
}

/** What is kept beside committed offsets, and so whether a block is named before it is written. */
export interface IntentPolicy {
  /** @throws as `parseMetadata` */
  readonly parse: (metadata: string | null, offset: number) => CommitNote;
  readonly toText: (note: CommitNote) => string;
}

/** Everything is kept: the only policy of a deployment. */
export const KEEP_INTENTS: IntentPolicy = { parse: parseMetadata, toText: toMetadata };

/** How far a group has read, as far as its commit tells. */
export interface ReadSoFar {
  readonly committed: number;
  /** Somebody else than a consumer of ours made the commit: what was read is not known. */
  readonly isForeign: boolean;
  /** Exclusive end of what was read: of the block under way, else what is committed. */
  readonly end: number;
  /** The batch in front of `end`. */
  readonly mark: LogMark | null;
  /** Exclusive end of the offsets that may have rows, of this log or of one before. */
  readonly triedTo: number;
}

/**
 * Whether something else than a consumer of ours made the commit. Ours have always put a note beside the offset, in
 * every format and from the first commit on. Tools that move offsets leave the text empty, or write words of their own.
 * A note of a later format is ours.
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
 * Reads how far a group has read; a commit in a format of nobody's tells nothing of the log.
 * @param metadata null where the group has committed nothing; empty where a commit has none
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
