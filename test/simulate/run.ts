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
const SEQUENCE_DIGITS = 8;

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
  const digits = sequence.toString(16).padStart(SEQUENCE_DIGITS, '0');
  // Varies from id to id, as in real clients; stores would compress equal bytes too well.
  const filler = (Math.imul(sequence + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0');
  return `${messageIdPrefix(run)}${filler.slice(0, 3)}-8${filler.slice(3, 6)}-${filler.slice(6)}00${digits}`;
}

/** The sequence number in a message id of a run. */
export const sequenceOfId = (messageId: string): number => Number.parseInt(messageId.slice(-SEQUENCE_DIGITS), 16);

/** The possible outcomes of a sent message. */
export const OUTCOMES = ['unsent', 'unknown', 'accepted', 'rejected'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** One byte per message, by sequence number: a run of a million messages takes one megabyte. */
export interface Ledger {
  /** Takes the next sequence number. */
  take(): number;
  set(sequence: number, outcome: Outcome): void;
  outcomeOf(sequence: number): Outcome;
  /** Sequence numbers taken so far. */
  readonly taken: number;
  count(outcome: Outcome): number;
}

/** Initial size; it doubles when the ledger is full. */
const CAPACITY_FIRST = 65_536;

export function createLedger(): Ledger {
  let outcomes = new Uint8Array(CAPACITY_FIRST);
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take: () => {
      if (taken === outcomes.length) {
        const wider = new Uint8Array(outcomes.length * 2);
        wider.set(outcomes);
        outcomes = wider;
      }
      return taken++;
    },
    set: (sequence, outcome) => {
      if (sequence >= taken) throw new RangeError(`sequence ${sequence} was never taken`);
      outcomes[sequence] = OUTCOMES.indexOf(outcome);
    },
    outcomeOf: (sequence) => OUTCOMES[outcomes[sequence] ?? 0]!,
    count: (outcome) => {
      const code = OUTCOMES.indexOf(outcome);
      let count = 0;
      for (let sequence = 0; sequence < taken; sequence++) if (outcomes[sequence] === code) count++;
      return count;
    },
  };
}
