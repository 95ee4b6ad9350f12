import { fromMark, type LogMark, parseMark } from './log-mark.ts';

/** The end of a block, committed before the block is written as metadata of the committed offset. */
export interface Intent {
  /** Exclusive end of the block. The block starts at the committed offset. */
  readonly end: number;
  /** When the block's first intent was committed, in epoch milliseconds from the clock of the committing process. */
  readonly intentAtMs: number;
  readonly transformVersion: number;
  readonly mark: LogMark | null;
  /** Time of the first record; null if there is none. Stored, because tokens contain it and retention may delete it. */
  readonly firstTimestampMs: number | null;
  /** The inputs of the rows besides the records, in the builder's format; null if there are none. */
  readonly basis: string | null;
}

export interface CommitNote {
  /** The current block; null for consumers that write no blocks. */
  readonly intent: Intent | null;
  /** The batch before the committed offset; null if unknown. */
  readonly mark: LogMark | null;
  /**
   * When a decision about a replaced log was last made, in epoch milliseconds; null if there was none. Part of tokens.
   */
  readonly decidedAtMs: number | null;
  /** True if the commit itself is the decision and nothing was committed afterwards. */
  readonly isDecision: boolean;
  /**
   * Exclusive end of the offsets read before a decision about a replaced log; null once the group has passed it.
   */
  readonly triedTo: number | null;
  /** The state that the previous block passes to the next block, in the builder's format; null if there is none. */
  readonly carried: string | null;
}

const NO_DECISION = { decidedAtMs: null, isDecision: false, triedTo: null };
export const NO_NOTE: CommitNote = { intent: null, mark: null, carried: null, ...NO_DECISION };

/** A commit in a later format pauses its partition, because rebuilding the block could write its rows twice. */
const FORMAT = 1;

/**
 * `{v, m, e, t, s, f, n, b, g, d, u, c}`: format and mark; the intent's end, time, transform version, first record
 * time, mark and basis; decision time, whether this commit is a decision, `triedTo`, `carried`. Missing values are
 * omitted.
 */
export function toMetadata({ intent, mark, decidedAtMs, isDecision, triedTo, carried }: CommitNote): string {
  const basis = intent?.basis ?? null;
  return JSON.stringify({
    v: FORMAT,
    ...(mark === null ? {} : { m: fromMark(mark) }),
    ...(intent === null ? {} : { e: intent.end, t: intent.intentAtMs, s: intent.transformVersion }),
    ...(intent === null || intent.firstTimestampMs === null ? {} : { f: intent.firstTimestampMs }),
    ...(intent === null || intent.mark === null ? {} : { n: fromMark(intent.mark) }),
    ...(basis === null ? {} : { b: basis }),
    ...(decidedAtMs === null ? {} : { g: decidedAtMs }),
    ...(isDecision ? { d: 1 } : {}),
    ...(triedTo === null ? {} : { u: triedTo }),
    ...(carried === null ? {} : { c: carried }),
  });
}

/** Returns null for text that is not a JSON object. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? (value as Record<string, unknown> | null) : null;
  } catch {
    return null;
  }
}

const toText = (value: unknown): string | null => (typeof value === 'string' ? value : null);

function parseIntent({ e, t, s, n, f, b }: Record<string, unknown>, offset: number): Intent | null {
  if (typeof e !== 'number' || typeof t !== 'number' || typeof s !== 'number' || e <= offset) return null;
  const firstTimestampMs = typeof f === 'number' ? f : null;
  return { end: e, intentAtMs: t, transformVersion: s, mark: parseMark(n), firstTimestampMs, basis: toText(b) };
}

/**
 * Parses the metadata that was committed with `offset`. Ignores an intent that ends at this offset.
 * @throws Error if the format is unknown
 */
export function parseMetadata(metadata: string | null, offset: number): CommitNote {
  if (metadata === null || metadata === '') return NO_NOTE;
  const value = parseObject(metadata);
  if (value?.v !== FORMAT)
    throw new Error(`The commit metadata was written by another release: ${metadata}. Run that release to continue.`);
  return {
    intent: parseIntent(value, offset),
    mark: parseMark(value.m),
    decidedAtMs: typeof value.g === 'number' ? value.g : null,
    isDecision: value.d === 1,
    triedTo: typeof value.u === 'number' ? value.u : null,
    carried: toText(value.c),
  };
}

/** Defines the metadata of commits, which determines whether an intent precedes each write. */
export interface IntentPolicy {
  /** @throws the errors of `parseMetadata` */
  readonly parse: (metadata: string | null, offset: number) => CommitNote;
  readonly toText: (note: CommitNote) => string;
}

export const KEEP_INTENTS: IntentPolicy = { parse: parseMetadata, toText: toMetadata };

/**
 * Returns how far a group has read, from its commit. A commit in an unknown format reveals only its offset.
 * @param metadata null if the group has no commit, empty if the commit has no metadata
 * @returns exclusive ends: `end` of the offsets that were read, `triedTo` of the offsets that may have rows
 */
export function parseRead(committed: number, metadata: string | null) {
  // All releases store a format version in the metadata, so a commit without a version was made by another tool.
  const isForeign = metadata !== null && typeof parseObject(metadata)?.v !== 'number';
  try {
    const { intent, mark, triedTo } = parseMetadata(metadata, committed);
    const end = intent?.end ?? committed;
    return { committed, isForeign, end, mark: intent?.mark ?? mark, triedTo: Math.max(end, triedTo ?? 0) };
  } catch {
    return { committed, isForeign, end: committed, mark: null, triedTo: committed };
  }
}
