import type { BlockBuilder, BlockName, BlockOrigin, BlockTrace, Outcome, StreamRecord } from '../ports.ts';
import type { DeadLetter } from './dead-letters.ts';
import type { Intent } from './intent.ts';
import type { LogMark } from './log-mark.ts';

export interface Block {
  readonly start: number;
  end: number;
  readonly builder: BlockBuilder;
  /** Time of the first record, or from the intent; null if there is neither. */
  firstTimestampMs: number | null;
  readonly transformVersion: number;
  /** The end from an earlier owner's intent, at which the block must end. */
  readonly recoverTo: number | null;
  /** The inputs of the rows besides the records, from an earlier owner's intent. */
  readonly basis: string | null;
  /** What the block adds to commits; null until the block is settled, or if its builder adds nothing. */
  trace: BlockTrace | null;
  mark: LogMark | null;
  /** When the first intent was committed, in epoch milliseconds; null until then. */
  intentAtMs: number | null;
  /** True if rows may have been sent to the store. */
  attempted: boolean;
  /** When the coordinator last accepted a commit for the block, from `performance.now()`. */
  confirmedAt: number;
  /** Dead letters with a label for metrics and logs that contains no record content. */
  readonly deadLetters: (DeadLetter & { readonly label: string })[];
  deadLetterBytes: number;
  readonly outcomes: Map<string, { kind: Outcome['kind']; reason: string; count: number }>;
}

export function createBlock(options: {
  start: number;
  builder: BlockBuilder;
  transformVersion: number;
  intent: Intent | null;
  /** Offsets before this one may have rows that were stored before a decision about a replaced log. */
  triedTo: number | null;
}): Block {
  const { start, builder, transformVersion, intent, triedTo } = options;
  return {
    start,
    end: start,
    builder,
    firstTimestampMs: intent?.firstTimestampMs ?? null,
    transformVersion,
    recoverTo: intent?.end ?? null,
    basis: intent?.basis ?? null,
    trace: null,
    mark: null,
    intentAtMs: intent?.intentAtMs ?? null,
    attempted: intent !== null || (triedTo !== null && start < triedTo),
    confirmedAt: intent === null ? 0 : performance.now(),
    deadLetters: [],
    deadLetterBytes: 0,
    outcomes: new Map(),
  };
}

export const toIntent = (block: Block, intentAtMs: number): Intent => {
  const { end, transformVersion, mark, firstTimestampMs, trace } = block;
  // The basis of a committed intent is kept, so that later attempts build the same rows.
  return { end, intentAtMs, transformVersion, mark, firstTimestampMs, basis: block.basis ?? trace?.basis ?? null };
};

/** Brokers store 4,096 bytes of metadata, and a commit may contain two traces. */
const TRACE_CHARACTERS_MAX = 1_000;

/** Settles the block once. @throws the builder's error, or Error if the trace is too long for a commit */
export async function settleBlock(block: Block, carried: BlockOrigin['carried']): Promise<void> {
  if (block.trace !== null || block.builder.settle === undefined) return;
  const trace = await block.builder.settle({ carried, basis: block.basis });
  if (Math.max(trace.basis.length, trace.carries.length) > TRACE_CHARACTERS_MAX)
    throw new Error(`The trace of a block exceeds ${TRACE_CHARACTERS_MAX} characters. Shorten the trace.`);
  block.trace = trace;
}

export function confirmIntent(block: Block, intentAtMs: number): void {
  block.intentAtMs = intentAtMs;
  block.confirmedAt = performance.now();
}

/** Returns the block's offsets and versions for the store, and marks the block as attempted. */
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

/** Adds a record to the builder. If the builder throws, the record becomes a dead letter. */
export function addToBlock(block: Block, record: StreamRecord): void {
  block.firstTimestampMs ??= record.timestampMs;
  let outcome: Outcome;
  let label: string;
  try {
    outcome = block.builder.add(record);
    // The text after a colon is specific to the record and would create one time series per record.
    label = outcome.kind === 'ok' ? '' : outcome.reason.replace(/:.*/s, '');
  } catch (fault) {
    const error = fault instanceof Error ? fault : new Error(String(fault));
    outcome = { kind: 'deadLetter', reason: `${error.name}: ${error.message}` };
    // The error message may quote the record, so it is neither logged nor used as a label.
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

/** Returns the token for rows from `start` up to, but not including, `end`. The token is the same for every owner. */
export function toBlockToken(block: BlockName, table: string, start: number, end: number): string {
  const { topic, partition, firstTimestampMs = 0, transformVersion, logDecidedAtMs } = block;
  const log = logDecidedAtMs === undefined ? '' : `|${logDecidedAtMs}`;
  return `${topic}|${partition}|${start}|${end - 1}|${firstTimestampMs}|${table}|${transformVersion}${log}`;
}
