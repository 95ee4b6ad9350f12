/**
 * Identifies a batch in a log. The broker's checksum covers times, keys, values and the producer's sequence numbers.
 */
export interface LogMark {
  readonly base: number;
  readonly epoch: number;
  readonly crc: number;
}

export const isSameMark = (a: LogMark, b: LogMark): boolean =>
  a.base === b.base && a.epoch === b.epoch && a.crc === b.crc;

/** Converts a mark to the form stored in metadata and in Redis: `[base, epoch, crc]`. */
export const fromMark = ({ base, epoch, crc }: LogMark): [number, number, number] => [base, epoch, crc];

/** Parses a stored mark. Returns null for any other value. */
export function parseMark(value: unknown): LogMark | null {
  if (!Array.isArray(value) || value.length !== 3 || !value.every((item) => Number.isSafeInteger(item))) return null;
  const [base, epoch, crc] = value as [number, number, number];
  return { base, epoch, crc };
}

/** The batches of a partition that were read and that a later commit may have to contain. */
export class MarkTrail {
  #marks: LogMark[];

  constructor(before: LogMark | null) {
    this.#marks = before === null ? [] : [before];
  }

  get last(): LogMark | null {
    return this.#marks.at(-1) ?? null;
  }

  /** Adds fetched batches. A fetch that starts within a batch returns the whole batch again. */
  add(batches: readonly LogMark[]): void {
    for (const batch of batches) if (batch.base > (this.last?.base ?? -1)) this.#marks.push(batch);
  }

  /** Returns the last batch that starts before an offset, which contains the record before this offset. */
  before(offset: number): LogMark | null {
    return this.#marks.findLast(({ base }) => base < offset) ?? null;
  }

  /** Drops batches before a committed offset, except for the last one, which may be needed again. */
  forget(offset: number): void {
    const firstRetained = this.#marks.findLastIndex(({ base }) => base < offset);
    if (firstRetained > 0) this.#marks = this.#marks.slice(firstRetained);
  }
}

/**
 * Returns true if a fetched batch may belong to a different log than the last batch that was read, because a different
 * leader appended it or it replaces a batch that was read. Rereading the old batch distinguishes these cases.
 */
export function isSuspect(last: LogMark | null, fetched: LogMark | undefined): boolean {
  if (last === null || fetched === undefined) return false;
  if (fetched.base <= last.base) return !isSameMark(last, fetched);
  return fetched.epoch !== last.epoch;
}
