import { randomBytes } from 'node:crypto';

/** Identity of a run: the seed repeats the traffic, the tag makes its ids unique. */
export interface Run {
  readonly seed: number;
  /** 12 lower-case hex digits, at the start of every message id and part of every identity of the run. */
  readonly tag: string;
  readonly startedAtMs: number;
}

/** 48 bits make a common tag of two runs in one environment very unlikely, and leave 74 bits of an id. */
const TAG_BYTES = 6;

export function createRun(seed: number, startedAtMs: number): Run {
  return { seed, tag: randomBytes(TAG_BYTES).toString('hex'), startedAtMs };
}

/** Prefix of every message id of the run, as ClickHouse prints a UUID. */
export function messageIdPrefix(run: Run): string {
  return `${run.tag.slice(0, 8)}-${run.tag.slice(8)}-8`;
}

/**
 * The message id of a sequence number: a UUID of version 8 (RFC 9562, free layout) that contains tag and sequence, so
 * that an id in a store can be traced to what was sent without a table of ids.
 */
export function toMessageId(run: Run, sequence: number): string {
  const digits = sequence.toString(16).padStart(8, '0');
  // Varies from id to id, as in real clients; stores would compress equal bytes too well.
  const filler = (Math.imul(sequence + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0');
  return `${messageIdPrefix(run)}${filler.slice(0, 3)}-8${filler.slice(3, 6)}-${filler.slice(6)}00${digits}`;
}
