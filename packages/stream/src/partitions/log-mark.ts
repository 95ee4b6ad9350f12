/** Identifies a batch in a log. The broker's checksum covers times, keys, values and the producer's sequence number. */
export interface LogMark {
  readonly base: number;
  readonly epoch: number;
  readonly crc: number;
}

export const isSameMark = (one: LogMark, other: LogMark): boolean =>
  one.base === other.base && one.epoch === other.epoch && one.crc === other.crc;

/** The form stored in metadata and in Redis: `[base, epoch, crc]`. */
export const fromMark = ({ base, epoch, crc }: LogMark): [number, number, number] => [base, epoch, crc];

/** Parses a stored mark; null for any other value. */
export function parseMark(value: unknown): LogMark | null {
  if (!Array.isArray(value) || value.length !== 3 || !value.every((part) => Number.isSafeInteger(part))) return null;
  const [base, epoch, crc] = value as [number, number, number];
  return { base, epoch, crc };
}

/** The batches of a partition that were read and that a commit may have to contain. */
export class MarkTrail {
  #marks: LogMark[];

  constructor(before: LogMark | null) {
    this.#marks = before === null ? [] : [before];
  }

  get last(): LogMark | null {
    return this.#marks.at(-1) ?? null;
  }

  /** Adds fetched batches. A fetch that starts within a batch returns the batch again. */
  add(batches: readonly LogMark[]): void {
    for (const batch of batches) if (batch.base > (this.last?.base ?? -1)) this.#marks.push(batch);
  }

  /** The last batch that starts before an offset: it contains the record before that offset. */
  before(offset: number): LogMark | null {
    return this.#marks.findLast(({ base }) => base < offset) ?? null;
  }

  /** Drops batches before a committed offset, except the last, which may be needed again. */
  forget(offset: number): void {
    const kept = this.#marks.findLastIndex(({ base }) => base < offset);
    if (kept > 0) this.#marks = this.#marks.slice(kept);
  }
}

/**
 * True when a fetched batch may belong to another log than the last batch that was read: another leader appended it, or
 * it replaces a batch that was read. Only rereading the old batch distinguishes a new leader from another log.
 */
export function isSuspect(last: LogMark | null, fetched: LogMark | undefined): boolean {
  if (last === null || fetched === undefined) return false;
  if (fetched.base <= last.base) return !isSameMark(last, fetched);
  return fetched.epoch !== last.epoch;
}
