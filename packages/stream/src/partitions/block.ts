import type { BlockBuilder, BlockName, BlockOrigin, BlockTrace, Outcome, StreamRecord } from '../ports.ts';
import type { DeadLetter } from './dead-letters.ts';
import type { Intent } from './intent.ts';
import type { LogMark } from './log-mark.ts';

/** A block of one partition while it is filled, waits and is written. */
export interface Block {
  readonly start: number;
  /** Exclusive; set when the block is cut. */
  end: number;
  readonly builder: BlockBuilder;
  /** Time of its first record when it was named; null while it has no record and no name. */
  firstTimestampMs: number | null;
  readonly transformVersion: number;
  /** The end that an earlier owner gave the block. It must be cut there and nowhere else. */
  readonly recoverTo: number | null;
  /** What its rows depended on, besides the records, when an earlier owner named it. */
  readonly basis: string | null;
  /** What it adds to commits; null while it is not settled, and when its builder adds nothing. */
  trace: BlockTrace | null;
  /** The batch before its end; known when the block is cut. */
  mark: LogMark | null;
  /** Epoch milliseconds when it was named, by us or an earlier owner; null while its intent is not committed. */
  namedAtMs: number | null;
  /** True when we or an earlier owner may have sent rows of it to the store already. */
  attempted: boolean;
  /** When the coordinator last accepted a commit for it (`performance.now`). */
  confirmedAt: number;
  /** Each with its reason in the form that may be counted and logged. */
  readonly deadLetters: (DeadLetter & { readonly label: string })[];
  deadLetterBytes: number;
  /** How many of its records had each outcome, for the counters. */
  readonly outcomes: Map<string, { kind: Outcome['kind']; reason: string; count: number }>;
}

export function createBlock(options: {
  start: number;
  builder: BlockBuilder;
  transformVersion: number;
  intent: Intent | null;
  /** Offsets before this may have rows that were stored before a decision about a log that was replaced. */
  triedTo: number | null;
}): Block {
  const { start, builder, transformVersion, intent, triedTo } = options;
  return {
    start,
    end: start,
    builder,
    firstTimestampMs: intent?.firstTimestampMs ?? null,
    transformVersion,
    recoverTo: intent === null ? null : intent.end,
    basis: intent?.basis ?? null,
    trace: null,
    mark: null,
    namedAtMs: intent === null ? null : intent.namedAtMs,
    attempted: intent !== null || (triedTo !== null && start < triedTo),
    confirmedAt: intent === null ? 0 : performance.now(),
    deadLetters: [],
    deadLetterBytes: 0,
    outcomes: new Map(),
  };
}

/** The intent of a block that is cut. */
export const toIntent = (block: Block, namedAtMs: number): Intent => {
  const { end, transformVersion, mark, firstTimestampMs, trace } = block;
  // A block that was named before keeps its basis. Otherwise a third attempt would build other rows.
  return { end, namedAtMs, transformVersion, mark, firstTimestampMs, basis: block.basis ?? trace?.basis ?? null };
};

/** Brokers keep 4,096 bytes beside an offset, and a commit may contain two of these. */
const TRACE_CHARACTERS_MAX = 1_000;

/** Lets the builder settle, once. @throws what the builder throws, and Error when its texts are too long for a commit */
export async function settleBlock(block: Block, carried: BlockOrigin['carried']): Promise<void> {
  if (block.trace !== null || block.builder.settle === undefined) return;
  const trace = await block.builder.settle({ carried, basis: block.basis });
  if (Math.max(trace.basis.length, trace.carries.length) > TRACE_CHARACTERS_MAX)
    throw new Error(`a block leaves more than ${TRACE_CHARACTERS_MAX} characters in its commit`);
  block.trace = trace;
}

/** The coordinator has just accepted a block's intent, for the first time or again. */
export function markNamed(block: Block, namedAtMs: number): void {
  block.namedAtMs = namedAtMs;
  block.confirmedAt = performance.now();
}

/** The block's name for the store. From then on the block counts as tried. */
export function startAttempt(
  block: Block,
  { topic, partition }: { topic: string; partition: number },
  logDecidedAtMs: number | null,
): BlockName {
  const { start, end, transformVersion, firstTimestampMs, attempted: triedBefore } = block;
  block.attempted = true;
  const name = { topic, partition, start, end, transformVersion, firstTimestampMs: firstTimestampMs ?? 0, triedBefore };
  return logDecidedAtMs === null ? name : { ...name, logDecidedAtMs };
}

/** Gives one record to the builder. Whatever the builder throws makes the record a dead letter. */
export function addToBlock(block: Block, record: StreamRecord): void {
  block.firstTimestampMs ??= record.timestampMs;
  let outcome: Outcome;
  let label: string;
  try {
    outcome = block.builder.add(record);
    // The text after a colon is about this one record: as a label it would create a time series for each record.
    label = outcome.kind === 'ok' ? '' : outcome.reason.replace(/:.*/s, '');
  } catch (fault) {
    const error = fault instanceof Error ? fault : new Error(String(fault));
    outcome = { kind: 'deadLetter', reason: `${error.name}: ${error.message}` };
    // A fault's message may quote the record. It must not be logged, and as a label it would create a series for each
    // record.
    label = error.name;
  }
  if (outcome.kind === 'deadLetter') {
    block.deadLetters.push({ record, reason: outcome.reason, label });
    block.deadLetterBytes += (record.value?.length ?? 0) + (record.key?.length ?? 0);
  }
  const name = `${outcome.kind} ${label}`;
  const counted = block.outcomes.get(name);
  if (counted === undefined) block.outcomes.set(name, { kind: outcome.kind, reason: label, count: 1 });
  else counted.count++;
}

/**
 * The token for the rows of a range of offsets of a block, `end` exclusive. It is made of topic, partition, offsets,
 * time of the first record, table, version of the transform and, for a replaced log, the time of the decision to read
 * on. Every owner that writes the block again uses the same tokens.
 */
export function toBlockToken(block: BlockName, table: string, start: number, end: number): string {
  const { topic, partition, firstTimestampMs = 0, transformVersion, logDecidedAtMs } = block;
  const log = logDecidedAtMs === undefined ? '' : `|${logDecidedAtMs}`;
  return `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}|${table}|${transformVersion}${log}`;
}
