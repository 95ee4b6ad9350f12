import { randomBytes } from 'node:crypto';

export interface Run {
  readonly seed: number;
  /** 12 lower-case hex digits: the prefix of every message id, and part of every identity. */
  readonly tag: string;
  readonly startedAtMs: number;
}

export interface RunOptions {
  readonly seed: number;
  /** Messages, lines or assets per second; 0 for no limit. */
  readonly rate: number;
  readonly brokenFraction: number;
  /** The comparison ends after a store has not changed for this long. */
  readonly settleIdleMaxMs: number;
  readonly stop: AbortSignal;
  onProgress(line: string): void;
}

const TAG_BYTES = 6;
const SEQUENCE_DIGITS = 8;

export function createRun(seed: number, startedAtMs: number): Run {
  return { seed, tag: randomBytes(TAG_BYTES).toString('hex'), startedAtMs };
}

export function messageIdPrefix(run: Run): string {
  return `${run.tag.slice(0, 8)}-${run.tag.slice(8)}-8`;
}

/** Creates a version 8 UUID (RFC 9562) that contains the run's tag and the sequence number. */
export function toMessageId(run: Run, sequence: number): string {
  const digits = sequence.toString(16).padStart(SEQUENCE_DIGITS, '0');
  // Varies between ids, because stores would compress constant bytes unrealistically well.
  const filler = (Math.imul(sequence + 1, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0');
  return `${messageIdPrefix(run)}${filler.slice(0, 3)}-8${filler.slice(3, 6)}-${filler.slice(6)}00${digits}`;
}

export const sequenceOfId = (messageId: string): number => Number.parseInt(messageId.slice(-SEQUENCE_DIGITS), 16);

export const OUTCOMES = ['unsent', 'unknown', 'accepted', 'rejected'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export type Ledger = ReturnType<typeof createLedger>;

const CAPACITY_FIRST = 65_536;

/** Stores outcomes by sequence number, with one byte per message. */
export function createLedger() {
  let outcomes = new Uint8Array(CAPACITY_FIRST);
  let taken = 0;
  return {
    get taken() {
      return taken;
    },
    take: (): number => {
      if (taken === outcomes.length) {
        const larger = new Uint8Array(outcomes.length * 2);
        larger.set(outcomes);
        outcomes = larger;
      }
      return taken++;
    },
    set: (sequence: number, outcome: Outcome): void => {
      if (sequence >= taken) throw new RangeError(`unknown sequence number ${sequence}`);
      outcomes[sequence] = OUTCOMES.indexOf(outcome);
    },
    outcomeOf: (sequence: number): Outcome => OUTCOMES[outcomes[sequence] ?? 0]!,
    count: (outcome: Outcome): number => {
      const code = OUTCOMES.indexOf(outcome);
      return outcomes.subarray(0, taken).reduce((sum, each) => sum + Number(each === code), 0);
    },
  };
}
