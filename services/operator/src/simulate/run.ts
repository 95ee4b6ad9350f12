import { randomBytes } from 'node:crypto';

/** What tells one run from every other: the seed repeats the traffic, the tag keeps its ids apart. */
export interface Run {
  readonly seed: number;
  /** 12 lower-case hex digits, at the head of every message id and inside every identity of the run. */
  readonly tag: string;
  readonly startedAtMs: number;
}

/** 48 bits: two runs in one environment share a tag once in 16 million runs' lifetimes, and ids keep 74 bits beside it. */
const TAG_BYTES = 6;

export function createRun(seed: number, startedAtMs: number): Run {
  return { seed, tag: randomBytes(TAG_BYTES).toString('hex'), startedAtMs };
}

/** Text that every message id of the run starts with, as ClickHouse prints a UUID. */
export function messageIdPrefix(run: Run): string {
  return `${run.tag.slice(0, 8)}-${run.tag.slice(8)}-8`;
}

/**
 * The message id of a sequence number: a UUID of version 8 (RFC 9562, free for one's own layout) that holds
 * tag and sequence, so that an id found in a store leads back to what was sent without a table of ids.
 */
export function toMessageId(run: Run, sequence: number): string {
  const digits = sequence.toString(16).padStart(8, '0');
  // Filler that differs from id to id, as in the ids of real clients; stores may compress equal bytes too well.
  const filler = (Math.imul(sequence + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0');
  return `${messageIdPrefix(run)}${filler.slice(0, 3)}-8${filler.slice(3, 6)}-${filler.slice(6)}00${digits}`;
}
