import { fromMark, type LogMark, parseMark } from './log-mark.ts';

/** The end of a block, committed before the block is written, in the metadata of the committed offset. */
export interface Intent {
  /** Exclusive end of the block; its start is the committed offset. */
  readonly end: number;
  /** Epoch milliseconds of the block's first intent, by the clock of the process that committed it. */
  readonly namedAtMs: number;
  readonly transformVersion: number;
  readonly mark: LogMark | null;
  /**
   * Time of the first record, stored because it is part of tokens and retention may delete the record. Null without
   * records.
   */
  readonly firstTimestampMs: number | null;
  /** What the rows depend on in addition to the records, in the builder's format; null when nothing. */
  readonly basis: string | null;
}

export interface CommitNote {
  /** The current block; null for consumers that write no blocks. */
  readonly intent: Intent | null;
  /** The batch before the committed offset; null when it is unknown. */
  readonly mark: LogMark | null;
  /**
   * Epoch milliseconds of the last decision about a replaced log, part of tokens; null if the log was never replaced.
   */
  readonly decidedAtMs: number | null;
  /** True when the commit itself is the decision, and nothing was committed after it. */
  readonly isDecision: boolean;
  /**
   * Exclusive end of the offsets read before a decision about a replaced log, which may have rows. Null once the group
   * has read past it.
   */
  readonly triedTo: number | null;
  /** What the previous block passes to the next block, in the builder's format; null when nothing. */
  readonly carried: string | null;
}

const NO_DECISION = { decidedAtMs: null, isDecision: false, triedTo: null };
export const NO_NOTE: CommitNote = { intent: null, mark: null, carried: null, ...NO_DECISION };

/** A commit in a later format pauses its partition, because rebuilding the block could write it twice. */
const FORMAT = 1;

/**
 * `{v, m, e, t, s, f, n, b, g, d, u, c}`: format, mark; the intent's end, time, transform version, first record time,
 * mark and basis; decision time, whether this commit is a decision, `triedTo`, `carried`. Absent values are omitted.
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
 * Parses the metadata committed with `offset`. An intent that ends at that offset is ignored.
 * @throws Error for an unknown format
 */
export function parseMetadata(metadata: string | null, offset: number): CommitNote {
  if (metadata === null || metadata === '') return NO_NOTE;
  let value: unknown;
  try {
    value = JSON.parse(metadata);
  } catch {
    value = null;
  }
  if (!isRecord(value) || value.v !== FORMAT)
    throw new Error(`A commit has metadata from another release: ${metadata}. Run that release to continue.`);
  return {
    intent: parseIntent(value, offset),
    mark: parseMark(value.m),
    decidedAtMs: typeof value.g === 'number' ? value.g : null,
    isDecision: value.d === 1,
    triedTo: typeof value.u === 'number' ? value.u : null,
    carried: toText(value.c),
  };
}

/** Determines the metadata of commits, and thereby whether an intent precedes each write. */
export interface IntentPolicy {
  /** @throws like `parseMetadata` */
  readonly parse: (metadata: string | null, offset: number) => CommitNote;
  readonly toText: (note: CommitNote) => string;
}

export const KEEP_INTENTS: IntentPolicy = { parse: parseMetadata, toText: toMetadata };

/**
 * Whether another tool made the commit. Consumers of every release store a note; tools store nothing or other metadata.
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
 * How far a group has read, according to its commit. A commit in an unknown format contains nothing about the log.
 * @param metadata null when the group has committed nothing; empty when the commit has no metadata
 * @returns exclusive ends: `end` of the offsets that were read, `triedTo` of those that may have rows from any log
 */
export function parseRead(committed: number, metadata: string | null) {
  const isForeign = isForeignMetadata(metadata);
  try {
    const { intent, mark, triedTo } = parseMetadata(metadata, committed);
    const end = intent?.end ?? committed;
    return { committed, isForeign, end, mark: intent?.mark ?? mark, triedTo: Math.max(end, triedTo ?? 0) };
  } catch {
    return { committed, isForeign, end: committed, mark: null, triedTo: committed };
  }
}
