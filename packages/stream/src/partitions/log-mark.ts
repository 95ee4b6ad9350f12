/** Identifies one batch of a log. The broker's checksum covers times, keys, values and the producer's sequence number. */
export interface LogMark {
  readonly base: number;
  readonly epoch: number;
  readonly crc: number;
}

export const isSameMark = (one: LogMark, other: LogMark): boolean =>
  one.base === other.base && one.epoch === other.epoch && one.crc === other.crc;

/** As stored in metadata and in Redis: `[base, epoch, crc]`. */
export const fromMark = ({ base, epoch, crc }: LogMark): [number, number, number] => [base, epoch, crc];

/** Null for anything that is not a mark. */
export function parseMark(value: unknown): LogMark | null {
  if (!Array.isArray(value) || value.length !== 3 || !value.every((part) => Number.isSafeInteger(part))) return null;
  const [base, epoch, crc] = value as [number, number, number];
  return { base, epoch, crc };
}

/** The batches of one partition that were read and that a commit may have to name. */
export class MarkTrail {
  #marks: LogMark[];

  constructor(before: LogMark | null) {
    this.#marks = before === null ? [] : [before];
  }

  get last(): LogMark | null {
    return this.#marks.at(-1) ?? null;
  }

  /** A fetch that starts inside a batch returns that batch again. */
  add(batches: readonly LogMark[]): void {
    for (const batch of batches) if (batch.base > (this.last?.base ?? -1)) this.#marks.push(batch);
  }

  /** The last batch that starts before an offset: it contains the record before that offset. */
  before(offset: number): LogMark | null {
    return this.#marks.findLast(({ base }) => base < offset) ?? null;
  }

  /** Everything before an offset is committed: of that, only the last batch can be named again. */
  forget(offset: number): void {
    const kept = this.#marks.findLastIndex(({ base }) => base < offset);
    if (kept > 0) this.#marks = this.#marks.slice(kept);
  }
}

/**
 * True when a fetched batch may belong to another log than the last one that was read: another leader appended it, or it
 * replaces a batch that was read. So does a new leader; only reading the old batch again distinguishes the two.
 */
export function isSuspect(last: LogMark | null, fetched: LogMark | undefined): boolean {
  if (last === null || fetched === undefined) return false;
  if (fetched.base <= last.base) return !isSameMark(last, fetched);
  return fetched.epoch !== last.epoch;
}
