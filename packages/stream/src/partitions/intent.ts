import { fromMark, type LogMark, parseMark } from './log-mark.ts';

/** The end of a block, committed before the block is written; part of the metadata of a committed offset. */
export interface Intent {
  /** Exclusive end of the block; its start is the committed offset. */
  readonly end: number;
  /** Epoch milliseconds when the block was first named, by the clock of the process that named it. */
  readonly namedAtMs: number;
  readonly transformVersion: number;
  readonly mark: LogMark | null;
  /** Time of its first record, part of its tokens: retention may delete that record. Null for a block without records. */
  readonly firstTimestampMs: number | null;
  /** What its rows depend on besides the records, in the builder's format; null when there is nothing else. */
  readonly basis: string | null;
}

export interface CommitNote {
  /** The block under way; none for consumers that write no blocks. */
  readonly intent: Intent | null;
  /** The batch before the committed offset; null when it is unknown. */
  readonly mark: LogMark | null;
  /** Epoch milliseconds of the last decision about a replaced log, part of tokens; null when it never was replaced. */
  readonly decidedAtMs: number | null;
  /** True when the commit itself is that decision, and nothing was committed after it. */
  readonly isDecision: boolean;
  /**
   * Exclusive end of what was read before a decision about a replaced log: earlier offsets may have rows. Null once the
   * group has read past it.
   */
  readonly triedTo: number | null;
  /** What the previous block left for the next one, in the builder's format; null when nothing. */
  readonly carried: string | null;
}

const NO_DECISION = { decidedAtMs: null, isDecision: false, triedTo: null };
export const NO_NOTE: CommitNote = { intent: null, mark: null, carried: null, ...NO_DECISION };

/** A commit of a greater format pauses its partition: building the block could write it twice. */
const FORMAT = 1;

/**
 * `{v, m, e, t, s, f, n, b, g, d, u, c}`: format, mark; the intent's end, time, transform version, first record's time,
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
 * Reads what was committed with `offset`. An intent that ends at that offset is ignored.
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
    throw new Error(`A commit has metadata of another release: ${metadata}. Run that release to continue.`);
  return {
    intent: parseIntent(value, offset),
    mark: parseMark(value.m),
    decidedAtMs: typeof value.g === 'number' ? value.g : null,
    isDecision: value.d === 1,
    triedTo: typeof value.u === 'number' ? value.u : null,
    carried: toText(value.c),
  };
}

/** Decides what is stored beside committed offsets, and with it whether a block is named before it is written. */
export interface IntentPolicy {
  /** @throws as `parseMetadata` */
  readonly parse: (metadata: string | null, offset: number) => CommitNote;
  readonly toText: (note: CommitNote) => string;
}

export const KEEP_INTENTS: IntentPolicy = { parse: parseMetadata, toText: toMetadata };

/** Whether another tool made the commit. Consumers of every release store a note; tools store nothing or another text. */
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
 * How far a group has read, according to its commit. A commit in an unknown format states nothing about the log.
 * @param metadata null when the group has committed nothing; empty when the commit has none
 * @returns exclusive ends: `end` of what was read, `triedTo` of the offsets that may have rows, of this log or an earlier one
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
