/**
 * Names one batch of a log, so that no other batch at its place is taken for it. The broker's own checksum covers times,
 * keys, values and the producer's sequence; brokers copy and keep it as it is.
 */
export interface LogMark {
  /** Offset of the batch's first record. */
  readonly base: number;
  /** Epoch of the leader that appended it. */
  readonly epoch: number;
  /** CRC-32C of the batch, as the log has it. */
  readonly crc: number;
}

export const isSameMark = (one: LogMark, other: LogMark): boolean =>
  one.base === other.base && one.epoch === other.epoch && one.crc === other.crc;

/** As it stands in metadata and in Redis: `[base, epoch, crc]`. */
export const fromMark = ({ base, epoch, crc }: LogMark): [number, number, number] => [base, epoch, crc];

/** Null for anything that is no mark. */
export function parseMark(value: unknown): LogMark | null {
  if (!Array.isArray(value) || value.length !== 3 || !value.every((part) => Number.isSafeInteger(part))) return null;
  const [base, epoch, crc] = value as [number, number, number];
  return { base, epoch, crc };
}

/** The batches read of one partition that a commit may still have to name. */
export class MarkTrail {
  /** In the order of the log. */
  #marks: LogMark[];

  constructor(before: LogMark | null) {
    this.#marks = before === null ? [] : [before];
  }

  /** The last batch read. */
  get last(): LogMark | null {
    return this.#marks.at(-1) ?? null;
  }

  /** Takes batches as they were fetched; a fetch that begins within a batch brings that batch again. */
  add(batches: readonly LogMark[]): void {
    for (const batch of batches) if (batch.base > (this.last?.base ?? -1)) this.#marks.push(batch);
  }

  /** The last batch that begins before an offset, which is the one that holds the record in front of it. */
  before(offset: number): LogMark | null {
    return this.#marks.findLast(({ base }) => base < offset) ?? null;
  }

  /** Everything in front of an offset is committed: of that only its last batch is ever named again. */
  forget(offset: number): void {
    const kept = this.#marks.findLastIndex(({ base }) => base < offset);
    if (kept > 0) this.#marks = this.#marks.slice(kept);
  }
}

/**
 * True when a batch fetched now may not follow the last one that was read: another leader appended it, or it begins
 * where something else was read. A log that lost its end and grew again shows here, because every leader has a later
 * epoch than the one before it. So does a mere change of leader: whoever asks reads the old batch again, which tells
 * the two apart.
 */
export function isSuspect(last: LogMark | null, fetched: LogMark | undefined): boolean {
  if (last === null || fetched === undefined) return false;
  if (fetched.base <= last.base) return !isSameMark(last, fetched);
  return fetched.epoch !== last.epoch;
}
